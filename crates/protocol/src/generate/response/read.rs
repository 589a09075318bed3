//! Reads a whole answer into the common form.

use crate::canon::Response;
use crate::generate::stream::Reader;
use crate::json::utf8;
use crate::unusable_answer::UnusableAnswer;

/// Reads a whole answer. `model` is the public id, which marks the origin of signatures.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, UnusableAnswer> {
    let mut reader = Reader::new(model);
    let mut events = Vec::new();
    reader.chunk(utf8(body)?, &mut events)?;
    reader.end(&mut events)?;
    Response::from_events(events)
}
