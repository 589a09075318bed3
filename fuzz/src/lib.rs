//! Fuzz targets. Each file under `fuzz_targets/` hands its bytes to one of the [`bodies`].

pub mod bodies;
// The listeners that judge converted streams in the tests judge them here as well.
#[allow(dead_code)]
#[path = "../../crates/protocol/tests/it/grammar/mod.rs"]
mod grammar;
