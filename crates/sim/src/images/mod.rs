//! Serves `POST /v1/images/generations` and `POST /v1/images/edits`.
//!
//! Pictures are real PNG, JPEG or `WebP` files of the requested size. They show the shapes and colours that the prompt
//! names (`scene.rs`), and `revised_prompt` (video-A) describes them. A preview is the same picture in coarser blocks.
//! An edit draws on the first given picture, inside the mask if there is one. Further pictures are shown small in its
//! corner.
//!
//! The beginning of the model's name decides the family:
//!
//! | name | family |
//! |---|---|
//! | `sim-paint-a` | video-A: `url` or base64 as requested, only JSON edits, no sizes, no streams, cost in ticks |
//! | `sim-paint-content` | content: one endpoint with a top-level `image`, tiers, sequences, layers, no `n` |
//! | any other | GPT-image: always base64, forms and JSON, previews, tokens |
//!
//! Scripts: `chunks=N` sends N pictures regardless of the requested number, `content-filter` makes the last picture
//! fail (not in streams of GPT-image), and `refuse` refuses the prompt.

mod answer;
mod call;
mod family;
mod form;
mod painting;
mod picture_spec;
mod request;
mod scene;
mod stream;
mod usage;

pub(crate) use call::{EditsCall, GenerationsCall};
