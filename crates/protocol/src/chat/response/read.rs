//! Reads a whole completion into the common form.

use crate::canon::Response;
use crate::chat::stream::assembler::Assembler;
use crate::unusable_answer::UnusableAnswer;

/// Reads a whole completion. `model` is the public id, which marks the origin of signatures.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, UnusableAnswer> {
    let mut events = Vec::new();
    let mut assembler = Assembler::new(model);
    assembler
        .take(body, model, &mut events)
        .and_then(|choices| {
            if choices {
                assembler.finish(&mut events)
            } else {
                Err(UnusableAnswer::malformed("the answer has no choices"))
            }
        })?;
    Response::from_events(events)
}
