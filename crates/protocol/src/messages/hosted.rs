//! Writes Messages requests for clouds that host the models: the path names the model, and the body names the version.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The differences between a cloud's Messages requests and the vendor's own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedMessages {
    /// The value of `anthropic_version` in the body. It replaces the version header.
    pub version: String,
    /// Whether only the path says that the answer is streamed.
    #[serde(default)]
    pub stream_in_path: bool,
    /// Whether the features that a client asks for are a list in the body. Otherwise they stay in their header.
    #[serde(default)]
    pub betas_in_body: bool,
}

/// The members of an object, in their order.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl HostedMessages {
    /// The request in the cloud's form. Members that are kept keep their bytes. `betas` are the features for the body.
    pub fn write(&self, body: &[Bytes], keeps_model: bool, betas: &[&str]) -> Bytes {
        let joined;
        let whole = match body {
            [whole] => whole,
            pieces => {
                joined = Bytes::from(pieces.concat());
                &joined
            }
        };
        // The request was read before, so it is an object. Anything else would be sent unchanged, for the upstream to
        // refuse.
        self.rewrite(whole, keeps_model, betas)
            .unwrap_or_else(|| whole.clone())
    }

    fn rewrite(&self, body: &[u8], keeps_model: bool, betas: &[&str]) -> Option<Bytes> {
        let Members(members) = serde_json::from_slice(body).ok()?;
        let mut out = Vec::with_capacity(body.len() + 64);
        out.extend_from_slice(br#"{"anthropic_version":"#);
        serde_json::to_writer(&mut out, &self.version).ok()?;
        if !betas.is_empty() {
            out.extend_from_slice(br#","anthropic_beta":"#);
            serde_json::to_writer(&mut out, betas).ok()?;
        }
        for (name, value) in members {
            let is_stated = match &*name {
                "anthropic_version" => true,
                "anthropic_beta" => self.betas_in_body,
                "model" => !keeps_model,
                "stream" => self.stream_in_path,
                _ => false,
            };
            if is_stated {
                continue;
            }
            out.push(b',');
            serde_json::to_writer(&mut out, &name).ok()?;
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        Some(out.into())
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A name, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn written(body: &[&'static str], keeps_model: bool) -> String {
        let form = HostedMessages {
            version: "cloud-2023-10-16".to_owned(),
            stream_in_path: false,
            betas_in_body: false,
        };
        let pieces: Vec<_> = body
            .iter()
            .map(|it| Bytes::from_static(it.as_bytes()))
            .collect();
        String::from_utf8(form.write(&pieces, keeps_model, &[]).to_vec()).unwrap()
    }

    #[test]
    fn the_model_leaves_the_body_and_the_version_enters_it() {
        for (body, keeps_model, out) in [
            (
                &[
                    r#"{ "mod"#,
                    r#"el": "m", "stream":true, "x": [1, {"model": 2}] }"#,
                ][..],
                false,
                r#"{"anthropic_version":"cloud-2023-10-16","stream":true,"x":[1, {"model": 2}]}"#,
            ),
            (
                &[r#"{"mod\u0065l":"m","anthropic_version":"other"}"#],
                false,
                r#"{"anthropic_version":"cloud-2023-10-16"}"#,
            ),
            (
                &[r#"{"model":"m","a\"b":1.50}"#],
                true,
                r#"{"anthropic_version":"cloud-2023-10-16","model":"m","a\"b":1.50}"#,
            ),
            (&["[1]"], false, "[1]"),
        ] {
            assert_eq!(written(body, keeps_model), out);
        }
    }

    #[test]
    fn a_cloud_may_want_the_stream_in_the_path_and_the_betas_in_the_body() {
        let form = HostedMessages {
            version: "cloud-1".to_owned(),
            stream_in_path: true,
            betas_in_body: true,
        };
        let body =
            br#"{"model":"m","stream":true,"anthropic_beta":["own"],"messages":[{"stream":1}]}"#;
        for (betas, expected) in [
            (
                &["a-1", "b-\"2\""][..],
                r#"{"anthropic_version":"cloud-1","anthropic_beta":["a-1","b-\"2\""],"messages":[{"stream":1}]}"#,
            ),
            (
                &[],
                r#"{"anthropic_version":"cloud-1","messages":[{"stream":1}]}"#,
            ),
        ] {
            let written = form.write(&[Bytes::from_static(body)], false, betas);
            assert_eq!(written, expected.as_bytes());
        }
    }
}
