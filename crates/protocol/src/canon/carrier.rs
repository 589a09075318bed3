//! Opaque data in a tool call's id, for dialects that have no field for it.
//!
//! Every client sends a tool call's id back with the result, unchanged. So reasoning that a model
//! demands back before its tool call can travel in the id where the caller's dialect has nothing
//! else: `<id>_gw1_<base64url of JSON>`. The letters are those that every dialect allows in ids.

use serde::{Deserialize, Serialize};

use super::opaque::{Opaque, base64url, decode};
use super::request::Thought;
use crate::dialect::Dialect;
use crate::json::patch::Edit;

const MARK: &str = "_gw1_";

/// What an id carries beside itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Carried {
    /// Thoughts that stood before the call.
    pub thoughts: Vec<Thought>,
    /// The signature of the call itself.
    pub opaque: Option<Opaque>,
}

#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    #[serde(default, skip_serializing_if = "Vec::is_empty", borrow)]
    t: Vec<WireThought<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    c: Option<WireOpaque<'a>>,
}

#[derive(Serialize, Deserialize)]
struct WireThought<'a> {
    #[serde(borrow)]
    x: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    r: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    o: Option<WireOpaque<'a>>,
}

#[derive(Serialize, Deserialize)]
struct WireOpaque<'a> {
    d: Dialect,
    #[serde(borrow)]
    m: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    v: std::borrow::Cow<'a, str>,
}

impl<'a> From<&'a Opaque> for WireOpaque<'a> {
    fn from(opaque: &'a Opaque) -> Self {
        Self {
            d: opaque.origin,
            m: (&*opaque.model).into(),
            v: (&*opaque.text).into(),
        }
    }
}

impl From<WireOpaque<'_>> for Opaque {
    fn from(wire: WireOpaque<'_>) -> Self {
        Self {
            origin: wire.d,
            model: wire.m.into(),
            text: wire.v.into(),
        }
    }
}

/// The id with its load. Thoughts without an opaque value are worth nothing to anybody and stay.
pub fn load(id: &str, carried: &Carried) -> String {
    let wire = Wire {
        t: carried
            .thoughts
            .iter()
            .filter(|thought| thought.opaque.is_some())
            .map(|thought| WireThought {
                x: (&*thought.text).into(),
                r: thought.redacted,
                o: thought.opaque.as_ref().map(Into::into),
            })
            .collect(),
        c: carried.opaque.as_ref().map(Into::into),
    };
    if wire.t.is_empty() && wire.c.is_none() {
        return id.to_owned();
    }
    // Strings and flags alone: this cannot fail.
    let json = serde_json::to_vec(&wire).unwrap_or_default();
    format!("{id}{MARK}{}", base64url(&json))
}

/// The id itself and what it carried. An id that is not ours is returned whole.
pub fn unload(id: &str) -> (&str, Carried) {
    let nothing = || (id, Carried::default());
    let Some((bare, load)) = id.rsplit_once(MARK) else {
        return nothing();
    };
    let Some(json) = decode(load) else {
        return nothing();
    };
    let Ok(wire) = serde_json::from_slice::<Wire<'_>>(&json) else {
        return nothing();
    };
    let thoughts = wire
        .t
        .into_iter()
        .map(|thought| Thought {
            text: thought.x.into_owned(),
            opaque: thought.o.map(Into::into),
            redacted: thought.r,
        })
        .collect();
    let carried = Carried {
        thoughts,
        opaque: wire.c.map(Into::into),
    };
    (bare, carried)
}

/// The longest id that is looked at.
const ID_BYTES_MAX: usize = 256;
/// Members that name a call, in any dialect.
const NAMES: [&[u8]; 4] = [
    b"\"id\"",
    b"\"call_id\"",
    b"\"tool_call_id\"",
    b"\"tool_use_id\"",
];

/// Changes for a request that goes on as it is, in whose history ids carry a load: the
/// conversation was with another model before. Upstreams bound the length of ids, and what the
/// load holds is nothing to them.
pub(crate) fn unload_all(body: &[u8]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut from = 0;
    let finder = memchr::memmem::Finder::new(MARK);
    while let Some(found) = finder.find(body.get(from..).unwrap_or_default()) {
        let at = from + found;
        from = at + MARK.len();
        // The id itself is short; a text that only mentions the mark may be long.
        let near = at.saturating_sub(ID_BYTES_MAX)..at;
        let open = memchr::memrchr(b'"', body.get(near.clone()).unwrap_or_default());
        let Some(open) = open.map(|open| near.start + open) else {
            continue;
        };
        let rest = body.get(at..).unwrap_or_default();
        let end = at + memchr::memchr(b'"', rest).unwrap_or(rest.len());
        from = end;
        let name = body.get(..open).unwrap_or_default().trim_ascii_end();
        let name = name.strip_suffix(b":").unwrap_or_default().trim_ascii_end();
        let is_id = NAMES.iter().any(|known| name.ends_with(known));
        let id = body.get(open + 1..end);
        let id = id.and_then(|id| str::from_utf8(id).ok());
        let is_loaded = |id: &str| unload(id).0.len() == at - open - 1;
        if is_id && id.is_some_and(is_loaded) {
            edits.push(Edit::remove(at..end));
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_of_others_is_left_alone() {
        for id in ["", "call_1", "call_gw1_x", "call__gw1_", "a_gw1_!!"] {
            assert_eq!(unload(id), (id, Carried::default()), "{id}");
        }
        assert_eq!(load("call_1", &Carried::default()), "call_1");
    }

    #[test]
    fn ids_in_a_body_lose_their_loads_and_nothing_else() {
        let carried = Carried {
            opaque: Some(Opaque {
                origin: Dialect::Messages,
                model: "a/b".into(),
                text: "x".into(),
            }),
            ..Carried::default()
        };
        let loaded = load("call_1", &carried);
        for (body, expected) in [
            (r#"{"id":"LOADED","x":1}"#, r#"{"id":"call_1","x":1}"#),
            (
                r#"[{"tool_call_id" : "LOADED"},{"call_id":"LOADED"}]"#,
                r#"[{"tool_call_id" : "call_1"},{"call_id":"call_1"}]"#,
            ),
            (r#"{"content":"LOADED"}"#, r#"{"content":"LOADED"}"#),
            (r#"{"content":"the \"id\":\"LOADED\""}"#, ""),
            (r#"{"id":"call_gw1_x"}"#, ""),
            (r#"{"id":"call_gw1_"#, ""),
            ("_gw1_", ""),
        ] {
            let body = body.replace("LOADED", &loaded);
            let expected = match expected {
                "" => body.clone(),
                expected => expected.replace("LOADED", &loaded),
            };
            let edits = unload_all(body.as_bytes());
            let patched = crate::json::patch::apply(&body.into(), edits);
            assert_eq!(patched, expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_loaded_is_unloaded(text in ".{0,80}", value in ".{0,80}", signed in any::<bool>()) {
            let opaque = Opaque { origin: Dialect::Messages, model: "a/b".into(), text: value.into() };
            let carried = Carried {
                thoughts: vec![Thought { text, opaque: Some(opaque.clone()), redacted: false }],
                opaque: signed.then_some(opaque),
            };
            let id = load("call_7", &carried);
            prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
            prop_assert_eq!(unload(&id), ("call_7", carried));
        }
    }
}
