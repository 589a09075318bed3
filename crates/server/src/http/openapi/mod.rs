//! The description of the public API in `OpenAPI` 3.1: `operations` lists what is served, `document` writes it.
//!
//! It states precisely what the gateway reads and answers, and leaves open what passes through to the models. The schemas
//! of bodies are in `schemas.json`.

mod document;
mod operations;
#[cfg(test)]
mod tests;

pub(super) use document::description;
