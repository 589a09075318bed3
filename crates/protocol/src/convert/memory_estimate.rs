//! Estimates how much memory a request takes in the common form.
//!
//! Each message, part and tool becomes a separate value, so a body of many small items could take many times
//! its size. Items are therefore counted before anything is allocated. Their number is limited, and the
//! caller charges for their memory.

use crate::failure::Failure;
use crate::json::{Cursor, Shape};

/// The maximum number of items in all lists of a converted request.
const ITEMS_MAX: usize = 100_000;
/// Upper bound for the memory of one item. Measured with the smallest messages and parts of every
/// dialect: a message of one letter took 683 bytes in the common form.
const ITEM_BYTES: usize = 700;
/// A body with fewer commas is not examined, because it has too few items to matter.
const COMMAS_FREE: usize = 256;

/// The memory that the common form of a request may take besides its texts. 0 for an ordinary
/// request.
pub fn estimate_memory(body: &[u8]) -> Result<usize, Failure> {
    // Commas separate items. Commas inside texts count too, because only a parser could tell them apart.
    if memchr::memchr_iter(b',', body).count() < COMMAS_FREE {
        return Ok(0);
    }
    let text = std::str::from_utf8(body).map_err(|_| Failure::invalid("The body is not UTF-8."))?;
    let mut items = 0;
    count(&mut Cursor::new(text), &mut items)?;
    if items > ITEMS_MAX {
        return Err(Failure::invalid(format!(
            "The request has more than {ITEMS_MAX} messages, parts, tools and inputs."
        )));
    }
    Ok(items.saturating_mul(ITEM_BYTES))
}

/// Counts the items of all lists.
fn count(cursor: &mut Cursor<'_>, items: &mut usize) -> Result<(), Failure> {
    match cursor.shape()? {
        Shape::Object => cursor.object(|cursor, _| count(cursor, items)),
        Shape::Array => cursor.array(|cursor| {
            *items = items.saturating_add(1);
            count(cursor, items)
        }),
        _ => cursor.value().map(drop).map_err(Failure::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(items: usize) -> Vec<u8> {
        let messages = vec![r#"{"role":"user","content":"a, b"}"#; items].join(",");
        format!(r#"{{"model":"m","messages":[{messages}]}}"#).into_bytes()
    }

    #[test]
    fn a_usual_request_is_estimated_at_nothing() {
        assert_eq!(estimate_memory(&body(80)).unwrap(), 0);
    }

    #[test]
    fn items_are_counted_and_commas_in_texts_are_not() {
        assert_eq!(estimate_memory(&body(300)).unwrap(), 300 * ITEM_BYTES);
        let prose = format!(r#"{{"messages":["{}"]}}"#, "a,".repeat(1000));
        assert_eq!(estimate_memory(prose.as_bytes()).unwrap(), ITEM_BYTES);
    }

    #[test]
    fn too_many_items_are_refused() {
        assert!(estimate_memory(&body(ITEMS_MAX)).is_ok());
        assert!(estimate_memory(&body(ITEMS_MAX + 1)).is_err());
    }
}
