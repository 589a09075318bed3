//! `POST /v1/images/generations` and `POST /v1/images/edits`.
//!
//! Pictures are real: PNG, JPEG or `WebP` at the asked size, drawn from the prompt. `scene.rs` says
//! which words it knows; the picture shows them and `revised_prompt` claims them. Previews are the
//! same picture in coarser blocks. An edit draws into the given picture, inside the mask alone
//! where there is one, and pastes further pictures into its corner.
//!
//! Families differ by the beginning of the model's name:
//!
//! | name | |
//! |---|---|
//! | `sim-paint-a` | video-A: `url` or base64 as asked, JSON edits alone, no sizes, no streams, cost in ticks |
//! | `sim-paint-content` | one endpoint with a top-level `image`, tiers, sequences, layers, no `n` |
//! | any other | GPT-image: always base64, forms and JSON, previews, tokens |
//!
//! Scripts: `chunks=N` delivers N pictures whatever was asked for, `content-filter` lets the last
//! one fail, `refuse` refuses the prompt.

mod answer;
mod call;
mod codec;
mod family;
mod form;
mod painting;
mod picture_spec;
mod request;
mod scene;
mod stream;
mod usage;

pub(crate) use call::{Edits, Generations};
