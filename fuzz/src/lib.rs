//! Fuzz targets. Each file under `fuzz_targets/` passes its bytes to one body: a plain function
//! that asserts properties of any bytes.

pub mod bodies;
pub mod driver;
pub mod event_streams;
pub mod files;
pub mod forms;
pub mod identities;
pub mod pieces;
pub mod sockets;
// The stream parsers of the tests also check converted streams here.
#[allow(dead_code)]
#[path = "../../crates/protocol/tests/it/grammar/mod.rs"]
mod grammar;
