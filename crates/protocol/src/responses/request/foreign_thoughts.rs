//! Removes the reasoning of other models from requests to Responses upstreams.
//!
//! Signatures and reasoning of other dialects are sent to clients as reasoning items that the
//! gateway wrapped. If the conversation continues with a Responses model, its upstream could not
//! decrypt these items and would refuse the request.

use std::ops::Range;

use crate::canon::Opaque;
use crate::dialect::Dialect;
use crate::json::patch::{Edit, spans_to_remove};
use crate::json::{Cursor, Raw, Shape, SyntaxError, write_string};
use crate::needle::Needle;

/// The start of a string that [`Opaque::wrap`] wrote, with its opening quote.
static WRAPPED: Needle = Needle::new("\"Z3cxf");

/// The edits that make the input acceptable to an upstream of this dialect.
pub(in crate::responses) fn unwrap_all(input: Raw<'_>, public_model: &str) -> Vec<Edit> {
    if !WRAPPED.is_in(input.text().as_bytes()) {
        return Vec::new();
    }
    let offset = input.span().start;
    let mut items = Vec::new();
    let walked = Cursor::new(input.text()).array(|cursor| {
        let item = cursor.value()?;
        items.push((item.span(), wrapped_value(item)?));
        Ok::<(), SyntaxError>(())
    });
    debug_assert!(walked.is_ok(), "the body has been checked");
    let mut edits = Vec::new();
    let mut kept = vec![true; items.len()];
    for ((_, wrapped), kept) in items.iter().zip(&mut kept) {
        let Some((place, opaque)) = wrapped else {
            continue;
        };
        let own = opaque.model.is_empty() || *opaque.model == *public_model;
        if opaque.origin == Dialect::Responses && own {
            let mut text = Vec::new();
            write_string(&mut text, &opaque.text);
            edits.push(Edit::replace(moved(place.clone(), offset), text));
        } else {
            *kept = false;
        }
    }
    let spans: Vec<Range<usize>> = items.into_iter().map(|(span, _)| span).collect();
    let gone = spans_to_remove(&spans, &kept).into_iter();
    edits.extend(gone.map(|span| Edit::remove(moved(span, offset))));
    edits
}

fn moved(span: Range<usize>, offset: usize) -> Range<usize> {
    span.start.saturating_add(offset)..span.end.saturating_add(offset)
}

fn wrapped_value(item: Raw<'_>) -> Result<Option<(Range<usize>, Opaque)>, SyntaxError> {
    let mut found = None;
    if item.shape() != Shape::Object {
        return Ok(None);
    }
    Cursor::new(item.text()).object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("encrypted_content") {
            let text = value.string().and_then(|text| text.decode().ok());
            let opaque = text.and_then(|text| Opaque::unwrap(&text));
            found = opaque.map(|opaque| (moved(value.span(), item.span().start), opaque));
        }
        Ok::<(), SyntaxError>(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::patch;
    use bytes::Bytes;

    /// The input that is sent for these items: wrapped reasoning of another dialect (`f`), of
    /// another model (`x`) or of this model (`o`), or values that are not wrapped.
    fn sent(items: &str) -> String {
        let wrap = |origin, model: &str| Opaque {
            origin,
            model: model.into(),
            text: "a\"b".into(),
        };
        let items: Vec<String> = items
            .chars()
            .map(|kind| match kind {
                'f' => wrap(Dialect::Generate, "m").wrap(),
                'x' => wrap(Dialect::Responses, "other").wrap(),
                'o' => wrap(Dialect::Responses, "m").wrap(),
                other => other.to_string(),
            })
            .map(|text| format!(r#"{{"encrypted_content":"{text}"}}"#))
            .collect();
        let body = format!("{{\"input\" : [ {} ]}}", items.join(" , "));
        let members = crate::json::Members::read(body.as_bytes(), crate::json::Spelling::One);
        let input = members.unwrap().array("input").unwrap().unwrap();
        let edits = unwrap_all(input, "m");
        let sent = patch::apply(&Bytes::from(body.clone()), edits);
        let sent = String::from_utf8(sent.to_vec()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&sent).unwrap();
        let items = value["input"].as_array().unwrap().iter();
        let items = items.map(|item| item["encrypted_content"].as_str().unwrap().to_owned());
        items.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_what_the_model_made_itself_is_sent_to_it() {
        for (items, expected) in [
            ("1", "1"),
            ("1f2", "1 2"),
            ("f1", "1"),
            ("1f", "1"),
            ("1ff", "1"),
            ("ff1xf2f", "1 2"),
            ("f", ""),
            ("fx", ""),
            ("1o2", "1 a\"b 2"),
            ("of", "a\"b"),
        ] {
            assert_eq!(sent(items), expected, "{items}");
        }
    }
}
