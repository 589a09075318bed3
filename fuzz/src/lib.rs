//! Fuzz targets. Each file under `fuzz_targets/` hands its bytes to one body: a plain function that asserts
//! what holds for any bytes.

pub mod bodies;
pub mod driver;
pub mod files;
pub mod forms;
pub mod identities;
pub mod pieces;
pub mod sockets;
// The listeners that judge converted streams in the tests judge them here as well.
#[allow(dead_code)]
#[path = "../../crates/protocol/tests/it/grammar/mod.rs"]
mod grammar;
