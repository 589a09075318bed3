//! Reads a whole answer into the common form.

use crate::canon::{Fold, Response};
use crate::generate::stream::Reader;
use crate::json::utf8;
use crate::native::Broken;

/// Reads a whole answer. `model` is the public id, the mark of origin of opaque values.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, Broken> {
    let mut reader = Reader::new(model);
    let mut events = Vec::new();
    reader.chunk(utf8(body)?, &mut events)?;
    reader.end(&mut events)?;
    let mut fold = Fold::default();
    let folded = events.into_iter().find_map(|event| fold.push(event));
    match folded {
        Some(folded) => folded.map_err(Broken::Failure),
        None => Err(Broken::Unfinished),
    }
}
