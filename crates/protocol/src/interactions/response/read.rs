//! Reads a whole interaction into the common form.

use crate::canon::Response;
use crate::interactions::stream::Reader;
use crate::json::{Cursor, utf8};
use crate::unusable_answer::UnusableAnswer;

/// Reads a whole answer. `model` is the public id, which marks the origin of signatures.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, UnusableAnswer> {
    let mut cursor = Cursor::new(utf8(body)?);
    let value = cursor.value()?;
    cursor.end()?;
    let mut events = Vec::new();
    Reader::whole(model, value, &mut events)?;
    Response::from_events(events)
}
