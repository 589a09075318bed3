//! Removes the reasoning that a Responses upstream cannot read from requests to it.
//!
//! Signatures and reasoning of other dialects are sent to clients as reasoning items that the
//! gateway wrapped. If the conversation continues with a Responses model, its upstream could not
//! decrypt these items and would refuse the request. It would also refuse its own reasoning items without
//! encrypted content, because with `store: false` it has kept nothing to look up.

use std::ops::Range;

use crate::canon::{Opaque, carrier};
use crate::dialect::Dialect;
use crate::json::patch::{Edit, ItemCutter, cut_members};
use crate::json::{Cursor, Raw, Shape, SyntaxError, write_string};
use crate::needle::Needle;

/// A relevant item contains one of these strings: the type of reasoning items, or the start of a string that
/// [`Opaque::wrap`] wrote, with its opening quote.
static NEEDLES: [Needle; 2] = [Needle::new("\"reasoning\""), Needle::new("\"Z3cxf")];

/// The edits that make the input acceptable to an upstream of this dialect.
pub(in crate::responses) fn edits_for_upstream(input: Raw<'_>, public_model: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    let text = input.text().as_bytes();
    if !NEEDLES.iter().any(|needle| needle.is_in(text)) {
        return edits;
    }
    let mut cutter = ItemCutter::default();
    let mut lost_reasoning = false;
    let walked = Cursor::new(input.text()).array(|cursor| {
        let item = Item::read(cursor.value()?.moved(input.span().start))?;
        let is_kept = match item.treatment(public_model) {
            Treatment::Unwrapped(place, opaque) => {
                let mut text = Vec::new();
                write_string(&mut text, &opaque.text);
                edits.push(Edit::replace(place, text));
                true
            }
            Treatment::Foreign => false,
            Treatment::Unreadable => {
                lost_reasoning = true;
                false
            }
            Treatment::Kept => {
                lost_reasoning &= !item.is("reasoning");
                if lost_reasoning && item.can_lose_id() {
                    item.cut_id(&mut edits)?;
                }
                true
            }
        };
        cutter.item(item.raw.span(), is_kept, &mut edits);
        Ok::<(), SyntaxError>(())
    });
    debug_assert!(walked.is_ok(), "the body has been checked");
    cutter.end(&mut edits);
    edits
}

enum Treatment {
    Kept,
    /// The value at this place is replaced by the model's own value.
    Unwrapped(Range<usize>, Opaque),
    /// Removed, because another model made it.
    Foreign,
    /// Removed, because the upstream would have had to store its content.
    Unreadable,
}

/// The members of an item that matter here.
struct Item<'a> {
    raw: Raw<'a>,
    kind: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    encrypted: Option<Raw<'a>>,
    content: Option<Raw<'a>>,
}

impl<'a> Item<'a> {
    fn read(raw: Raw<'a>) -> Result<Self, SyntaxError> {
        let mut item = Self {
            raw,
            kind: None,
            id: None,
            encrypted: None,
            content: None,
        };
        if raw.shape() != Shape::Object {
            return Ok(item);
        }
        Cursor::new(raw.text()).object(|cursor, name| {
            let value = Some(cursor.value()?.moved(raw.span().start));
            if name.is("type") {
                item.kind = value;
            } else if name.is("id") {
                item.id = value;
            } else if name.is("encrypted_content") {
                item.encrypted = value;
            } else if name.is("content") {
                item.content = value;
            }
            Ok::<(), SyntaxError>(())
        })?;
        Ok(item)
    }

    fn is(&self, kind: &str) -> bool {
        let text = self.kind.and_then(|kind| kind.string());
        text.is_some_and(|text| text.is(kind))
    }

    fn treatment(&self, public_model: &str) -> Treatment {
        if let Some((place, opaque)) = self.wrapped() {
            let own = opaque.model.is_empty() || *opaque.model == *public_model;
            return match opaque.origin {
                Dialect::Responses if own => Treatment::Unwrapped(place, opaque),
                _ => Treatment::Foreign,
            };
        }
        // Engines that do not encrypt their reasoning send it as plain content, and read it back.
        if self.is("reasoning") && !is_filled(self.encrypted) && !is_filled(self.content) {
            return Treatment::Unreadable;
        }
        Treatment::Kept
    }

    fn wrapped(&self) -> Option<(Range<usize>, Opaque)> {
        let value = self.encrypted?;
        let text = value.string()?.decode().ok()?;
        Some((value.span(), Opaque::unwrap(&text)?))
    }

    /// Whether the item may be sent without its id. The vendor refuses the id of an item whose reasoning is
    /// missing, because it knows which items belong together. A message or a call needs no id. Other items
    /// need theirs.
    fn can_lose_id(&self) -> bool {
        let text = self.id.and_then(|id| id.string());
        // An id with a payload is not the vendor's own id. The payload is removed elsewhere.
        let is_ours = text.is_some_and(|id| carrier::may_carry("id", id.raw()));
        let kinds = ["message", "function_call", "custom_tool_call"];
        let is_known = self.kind.is_none() || kinds.iter().any(|kind| self.is(kind));
        self.id.is_some() && !is_ours && is_known
    }

    fn cut_id(&self, edits: &mut Vec<Edit>) -> Result<(), SyntaxError> {
        let mut cut = Vec::new();
        let cursor = &mut Cursor::new(self.raw.text());
        cut_members(cursor, &[], |name| name.is("id"), &mut cut)?;
        let start = self.raw.span().start;
        edits.extend(cut.into_iter().map(|edit| Edit {
            span: edit.span.start + start..edit.span.end + start,
            ..edit
        }));
        Ok(())
    }
}

/// Whether a member has a value that is not empty.
fn is_filled(value: Option<Raw<'_>>) -> bool {
    value.is_some_and(|value| !value.is_null() && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::patch;
    use bytes::Bytes;

    /// The `encrypted_content` values that are sent for these items. `f` is wrapped reasoning of another
    /// dialect, `x` of another model, and `o` of this model. Other letters are not wrapped.
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
        let sent = sent_input(&format!("[ {} ]", items.join(" , ")));
        let value: serde_json::Value = serde_json::from_str(&sent).unwrap();
        let items = value.as_array().unwrap().iter();
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

    fn sent_input(input: &str) -> String {
        let body = format!("{{\"input\":{input}}}");
        let members = crate::json::Members::read(body.as_bytes(), crate::json::Spelling::One);
        let input = members.unwrap().array("input").unwrap().unwrap();
        let edits = edits_for_upstream(input, "m");
        let sent = patch::apply(&Bytes::from(body.clone()), edits);
        let sent = std::str::from_utf8(&sent).unwrap();
        let sent = sent.strip_prefix("{\"input\":").unwrap();
        sent.strip_suffix('}').unwrap().to_owned()
    }

    #[test]
    fn reasoning_that_the_upstream_does_not_have_is_not_sent() {
        const HI: &str = r#"{"role":"user","content":"hi"}"#;
        let reasoning = |rest: &str| format!(r#"{{"type":"reasoning","id":"rs_1"{rest}}}"#);
        for (rest, is_sent) in [
            (r#","summary":[]"#, false),
            (
                r#","summary":[{"type":"summary_text","text":"Hm."}]"#,
                false,
            ),
            (r#","encrypted_content":null,"content":null"#, false),
            (r#","encrypted_content":"","content":[]"#, false),
            (r#","encrypted_content":"gAAAA""#, true),
            (
                r#","content":[{"type":"reasoning_text","text":"Hm."}]"#,
                true,
            ),
            // A value of a wrong type is passed on to the upstream.
            (r#","encrypted_content":7"#, true),
        ] {
            let item = reasoning(rest);
            let input = format!("[{HI}, {item} ,{HI}]");
            let expected = match is_sent.then_some(&input) {
                Some(input) => input.clone(),
                None => format!("[{HI}, {HI}]"),
            };
            assert_eq!(sent_input(&input), expected, "{rest}");
        }
        // Only reasoning items are removed.
        let text = r#"[{"type":"message","role":"user","content":"\"reasoning\""},{"type":"x","reasoning":"reasoning"}]"#;
        assert_eq!(sent_input(text), text);
    }

    #[test]
    fn items_do_not_refer_to_reasoning_that_is_not_sent() {
        let lost = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
        let whole = r#"{"type":"reasoning","id":"rs_2","encrypted_content":"gAAAA","summary":[]}"#;
        let call = |id: &str| format!(r#"{{{id}"type":"function_call","call_id":"call_1"}}"#);
        let message = |id: &str| format!(r#"{{"role":"assistant"{id}}}"#);
        let search = r#"{"type":"web_search_call","id":"ws_1"}"#;
        let (call_id, message_id) = (r#""id":"fc_1","#, r#","id":"msg_1""#);
        let named = format!("{search},{},{}", call(call_id), message(message_id));
        let unnamed = format!("{search},{},{}", call(""), message(""));
        for (input, expected) in [
            (format!("[{named}]"), format!("[{named}]")),
            (format!("[{lost},{named}]"), format!("[{unnamed}]")),
            (
                format!("[{named},{lost},{named}]"),
                format!("[{named},{unnamed}]"),
            ),
            (
                format!("[{lost},{named},{whole},{named}]"),
                format!("[{unnamed},{whole},{named}]"),
            ),
            (
                format!("[{lost},{}]", message(r#","id":"a_gw1_b""#)),
                format!("[{}]", message(r#","id":"a_gw1_b""#)),
            ),
        ] {
            assert_eq!(sent_input(&input), expected, "{input}");
        }
    }
}
