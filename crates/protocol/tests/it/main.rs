//! The wire formats, seen from outside: the native path, the dialects, and the laws between them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod answers;
#[path = "../../../../fuzz/src/bodies.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod bodies;
mod cases;
mod chat;
mod convert;
mod envelopes;
mod generate;
mod google_hostile;
mod google_laws;
mod google_native;
mod google_writing;
mod grammar;
mod hostile;
mod interactions;
mod laws;
mod media;
mod messages;
mod refusals;
mod requests;
mod responses;
mod streams;
mod ways;
