//! Encodes opaque data in the id of a tool call, for dialects that have no member for it.
//!
//! Clients return the id of a tool call with its result, unchanged. If the client's dialect has no other place,
//! the id therefore carries the reasoning that the model needs back: `<id>_gw1_<base64url of JSON>`. Every
//! dialect allows these characters in ids.

use serde::{Deserialize, Serialize};

use super::base64;
use super::opaque::Opaque;
use super::request::Thought;
use crate::dialect::Dialect;

const MARK: &str = "_gw1_";

/// The data that an id carries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdPayload {
    /// The thoughts before the call.
    pub thoughts: Vec<Thought>,
    /// The signature of the call itself.
    pub opaque: Option<Opaque>,
}

#[derive(Serialize, Deserialize)]
struct WirePayload<'a> {
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

/// Appends data to an id. Thoughts without an opaque value are left out, because no model accepts them.
pub fn encode(id: &str, carried: &IdPayload) -> String {
    let wire = WirePayload {
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
    // This cannot fail, because the payload has only strings and booleans.
    let json = serde_json::to_vec(&wire).unwrap_or_default();
    format!("{id}{MARK}{}", base64::url_safe(&json))
}

/// Splits an id into the original id and the data. An id without data is returned unchanged.
pub fn decode(id: &str) -> (&str, IdPayload) {
    let nothing = || (id, IdPayload::default());
    let Some((bare, load)) = id.rsplit_once(MARK) else {
        return nothing();
    };
    let Some(json) = base64::decode(load) else {
        return nothing();
    };
    let Ok(wire) = serde_json::from_slice::<WirePayload<'_>>(&json) else {
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
    let carried = IdPayload {
        thoughts,
        opaque: wire.c.map(Into::into),
    };
    (bare, carried)
}

/// Members that hold the id of a call, in any dialect.
const NAMES: [&str; 4] = ["id", "call_id", "tool_call_id", "tool_use_id"];

/// Whether the member may hold an id that carries data.
pub(crate) fn may_carry(name: &str, text: &str) -> bool {
    NAMES.contains(&name) && text.contains(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_of_others_is_left_alone() {
        for id in ["", "call_1", "call_gw1_x", "call__gw1_", "a_gw1_!!"] {
            assert_eq!(decode(id), (id, IdPayload::default()), "{id}");
        }
        assert_eq!(encode("call_1", &IdPayload::default()), "call_1");
    }

    proptest! {
        #[test]
        fn carried_data_is_decoded_again(text in ".{0,80}", value in ".{0,80}", signed in any::<bool>()) {
            let opaque = Opaque { origin: Dialect::Messages, model: "a/b".into(), text: value.into() };
            let carried = IdPayload {
                thoughts: vec![Thought { text, opaque: Some(opaque.clone()), redacted: false }],
                opaque: signed.then_some(opaque),
            };
            let id = encode("call_7", &carried);
            prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
            prop_assert_eq!(decode(&id), ("call_7", carried));
        }
    }
}
