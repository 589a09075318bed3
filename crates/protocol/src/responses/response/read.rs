//! Reads a whole answer into the common form.

use crate::canon::Response;
use crate::json::{Cursor, Shape, utf8};
use crate::responses::stream::Reader;
use crate::unusable_answer::UnusableAnswer;

/// Reads a whole answer of the model with this public id.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, UnusableAnswer> {
    let mut cursor = Cursor::new(utf8(body)?);
    let response = cursor.value()?;
    cursor.end()?;
    if response.shape() != Shape::Object || response.is_empty() {
        return Err(UnusableAnswer::malformed("the answer is no response"));
    }
    let mut events = Vec::new();
    Reader::whole(model, response, &mut events)?;
    Response::from_events(events)
}
