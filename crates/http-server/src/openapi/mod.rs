//! The `OpenAPI` 3.1 description of the public API: `operations` lists the operations, `document` generates the text.
//!
//! It describes precisely what the gateway reads and answers, and leaves open what passes through to the models. The
//! schemas of bodies are in `schemas.json`.

mod document;
mod operations;
#[cfg(test)]
mod tests;

pub(super) use document::description;
