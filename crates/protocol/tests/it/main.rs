//! The wire formats, tested through the public API: the native path, the dialects, and properties
//! of all pairs of dialects.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod accepted_forms;
mod answers;
#[path = "../../../../fuzz/src/bodies.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod bodies;
mod cases;
mod chat;
mod convert;
#[path = "../../../../fuzz/src/driver.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod driver;
mod envelopes;
#[path = "../../../../fuzz/src/event_streams.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod event_streams;
#[path = "../../../../fuzz/src/files.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod files;
#[path = "../../../../fuzz/src/forms.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod forms;
mod generate;
mod google_hostile;
mod google_native;
mod google_properties;
mod google_writing;
mod grammar;
mod guarded;
mod hostile;
#[path = "../../../../fuzz/src/identities.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod identities;
mod interactions;
mod media;
mod messages;
mod native_upstream_text;
#[path = "../../../../fuzz/src/pieces.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod pieces;
mod properties;
mod refusals;
mod request_properties;
mod requests;
mod responses;
#[cfg(target_os = "linux")]
mod session_memory;
#[path = "../../../../fuzz/src/sockets.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call them from outside")]
mod sockets;
mod streams;
mod usage_shown;
mod zero_usage;
