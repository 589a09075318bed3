//! Reads a whole completion into the common form.

use crate::canon::{Fold, Response};
use crate::chat::stream::assembler::Assembler;
use crate::native::Broken;

/// Reads a whole completion. `model` is the public id, the mark of what only the model can read.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, Broken> {
    let mut events = Vec::new();
    let mut assembler = Assembler::new(model);
    assembler
        .take(body, model, &mut events)
        .and_then(|choices| {
            if choices {
                assembler.finish(&mut events)
            } else {
                Err(Broken::malformed("the answer has no choices"))
            }
        })?;
    let mut fold = Fold::default();
    let mut folded = events.into_iter().filter_map(|event| fold.push(event));
    match folded.next() {
        Some(Ok(response)) => Ok(response),
        Some(Err(failure)) => Err(Broken::Failure(failure)),
        None => Err(Broken::Unfinished),
    }
}
