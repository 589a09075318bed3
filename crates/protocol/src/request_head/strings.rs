//! Collects the relevant strings of a request in the single pass that validates it.

use std::borrow::Cow;

use super::head::LongCache;
use super::stored;
use crate::canon::carrier;
use crate::count::{InputCount, JsonCounter, MemberUse};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::members::is_spelt;
use crate::json::patch::Edit;
use crate::json::scan::ContentVisitor;
use crate::json::{Members, Spelling, Text};
use crate::shared::signature;
use crate::tool::Tools;

/// Tokens of a request that are not in any of its strings.
const FRAME_TOKENS: u64 = 3;

/// The members of a request that the model reads, in snake case.
#[derive(Debug)]
pub(crate) struct PromptMembers {
    /// The member with the conversation, which may contain media.
    pub(crate) conversation: &'static str,
    /// Members with text only.
    pub(crate) text: &'static [&'static str],
}

impl PromptMembers {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.text.iter().copied().chain([self.conversation])
    }

    fn member_use(&self, found: &str, spelling: Spelling) -> MemberUse {
        if is_spelt(found, self.conversation, spelling) {
            MemberUse::Conversation
        } else if self.text.iter().any(|it| is_spelt(found, it, spelling)) {
            MemberUse::Text
        } else {
            MemberUse::Unread
        }
    }
}

/// Reads and counts a request, and records the relevant strings that the model reads.
pub(crate) fn read_members<'a>(
    body: &'a [u8],
    spelling: Spelling,
    prompt_members: &PromptMembers,
) -> Result<(Members<'a>, RequestStrings<'a>), Failure> {
    let mut strings = RequestStrings {
        body_bytes: body.len(),
        ..RequestStrings::default()
    };
    let members = Members::read_shown_to(body, spelling, &mut strings, |strings, name| {
        strings.begin(prompt_members.member_use(name, spelling));
        strings.is_cache_control = name == "cache_control";
    })?;
    // A member in another spelling was not inspected, so it is refused.
    for name in prompt_members.names() {
        members.find(name)?;
    }
    Ok((members, strings))
}

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four things that are so or not, each by itself"
)]
pub(crate) struct RequestStrings<'a> {
    counter: JsonCounter<'a>,
    body_bytes: usize,
    /// Whether the model reads the current member.
    is_read: bool,
    /// Whether the current member is a `cache_control` itself.
    is_cache_control: bool,
    /// The number of open containers. `cache_control_depth` is this number inside the current
    /// `cache_control`.
    depth: usize,
    cache_control_depth: Option<usize>,
    has_long_cache: bool,
    /// The name that precedes the next strings.
    name: Cow<'a, str>,
    loaded_ids: Vec<Text<'a>>,
    wrapped_signatures: Vec<Text<'a>>,
    /// Whether the request may name an object that the upstream stores.
    may_be_stored: bool,
}

impl RequestStrings<'_> {
    fn begin(&mut self, member_use: MemberUse) {
        self.is_read = member_use != MemberUse::Unread;
        self.name = Cow::Borrowed("");
        self.counter.begin(member_use);
    }

    /// Whether a `cache_control` asks for a cache that is kept longer than the usual five minutes, for an upstream that
    /// counts the writes to it in this way.
    pub(crate) fn long_cache(&self, counted: LongCache) -> LongCache {
        if self.has_long_cache {
            counted
        } else {
            LongCache::No
        }
    }

    pub(crate) fn refuse_stored(
        &self,
        dialect: Dialect,
        members: &Members<'_>,
    ) -> Result<(), Failure> {
        if self.may_be_stored {
            stored::refuse(dialect, members)?;
        }
        Ok(())
    }

    /// The input tokens of the request. There is no upper bound with built-in tools, because they
    /// add text to the input.
    pub(crate) fn input(&self, tools: Tools) -> InputCount {
        let input = self.counter.finish(self.body_bytes);
        InputCount {
            tokens: input.tokens.saturating_add(FRAME_TOKENS),
            tokens_max: input.tokens_max.filter(|_| tools.is_empty()),
            ..input
        }
    }

    /// The edits that remove payloads from ids in the history, for a native request. Another model answered
    /// earlier. Upstreams limit the length of ids, and the payload means nothing to them.
    pub(crate) fn remove_id_payloads(&self) -> impl Iterator<Item = Edit> {
        self.loaded_ids.iter().map(|id| {
            let (bare, _) = carrier::decode(id.raw());
            let span = id.span();
            Edit::remove(span.start + bare.len()..span.end)
        })
    }

    /// The edits that replace wrapped signatures in the history, for a native request. This model would
    /// refuse a wrapped signature.
    pub(crate) fn unwrap_signatures(
        &self,
        own: Dialect,
        public_model: &str,
    ) -> impl Iterator<Item = Edit> {
        self.wrapped_signatures.iter().filter_map(move |text| {
            let kept = signature::unwrapped(text.raw(), own, public_model)?;
            Some(Edit::replace(text.span(), kept.into_bytes()))
        })
    }
}

impl<'a> ContentVisitor<'a> for RequestStrings<'a> {
    fn name(&mut self, name: Text<'a>) {
        self.name = name.decode_lossy();
        self.may_be_stored = self.may_be_stored || stored::is_stored_name(&self.name);
        self.counter.name(name);
    }

    fn string(&mut self, text: Text<'a>) {
        if self.is_read {
            if carrier::may_carry(&self.name, text.raw()) {
                self.loaded_ids.push(text);
            } else if signature::is_wrapped(&self.name, text.raw()) {
                self.wrapped_signatures.push(text);
            }
        }
        self.may_be_stored = self.may_be_stored || stored::is_stored_url(&self.name, text);
        if self.cache_control_depth == Some(self.depth) && self.name == "ttl" {
            self.has_long_cache |= !text.is("5m");
        }
        self.counter.string(text);
    }

    fn scalar(&mut self, raw: &'a str) {
        self.counter.scalar(raw);
    }

    fn opened(&mut self, is_object: bool) {
        self.depth += 1;
        if self.name == "cache_control" || self.is_cache_control && self.depth == 1 {
            self.cache_control_depth = Some(self.depth);
        }
        self.counter.opened(is_object);
    }

    fn closed(&mut self) {
        if self.cache_control_depth == Some(self.depth) {
            self.cache_control_depth = None;
        }
        self.depth = self.depth.saturating_sub(1);
        self.counter.closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Opaque;
    use crate::canon::carrier::IdPayload;
    use crate::json::patch;

    /// The body that is sent, if the model reads all of its members.
    fn sent(body: &str) -> String {
        let read = PromptMembers {
            conversation: "m",
            text: &[],
        };
        let (_, strings) = read_members(body.as_bytes(), Spelling::One, &read).unwrap();
        let signatures = strings.unwrap_signatures(Dialect::Generate, "maker/m");
        let edits = strings.remove_id_payloads().chain(signatures).collect();
        let sent = patch::apply(&body.to_owned().into(), edits);
        String::from_utf8(sent.to_vec()).unwrap()
    }

    #[test]
    fn ids_go_on_without_their_load() {
        let opaque = Opaque {
            origin: Dialect::Messages,
            model: "a/b".into(),
            text: "sig".into(),
        };
        let carried = IdPayload {
            opaque: Some(opaque),
            ..IdPayload::default()
        };
        let loaded = carrier::encode("call_1", &carried);
        for (body, expected) in [
            (
                r#"{"m":{"id":"LOADED","x":1}}"#,
                r#"{"m":{"id":"call_1","x":1}}"#,
            ),
            (
                r#"{"m":[{"tool_call_id" : "LOADED"},{"call_id":"LOADED"}]}"#,
                r#"{"m":[{"tool_call_id" : "call_1"},{"call_id":"call_1"}]}"#,
            ),
            (r#"{"m":{"content":"LOADED"}}"#, ""),
            (r#"{"m":{"content":"the \"id\":\"LOADED\""}}"#, ""),
            (r#"{"m":{"id":"call_gw1_x"}}"#, ""),
            (r#"{"m":{"id":"_gw1_"}}"#, ""),
        ] {
            let body = body.replace("LOADED", &loaded);
            let expected = match expected {
                "" => &body,
                expected => expected,
            };
            assert_eq!(sent(&body), *expected);
        }
    }

    #[test]
    fn signatures_of_other_models_are_not_shown_to_this_one() {
        let wrap = |origin, model: &str| {
            let (model, text) = (model.into(), "U0lH".into());
            Opaque {
                origin,
                model,
                text,
            }
            .wrap()
        };
        let own = wrap(Dialect::Generate, "maker/m");
        let other = wrap(Dialect::Generate, "maker/other");
        let foreign = wrap(Dialect::Messages, "maker/m");
        let body = format!(
            r#"{{"m":{{"a":"{own}","thoughtSignature" : "{own}","b":[{{"signature":"{other}"}}],"thought_signature":"{foreign}","signature":"U0lH","c":"Z3cxf"}}}}"#
        );
        let bypass = "skip_thought_signature_validator";
        assert_eq!(
            sent(&body),
            format!(
                r#"{{"m":{{"a":"{own}","thoughtSignature" : "U0lH","b":[{{"signature":"{bypass}"}}],"thought_signature":"{bypass}","signature":"U0lH","c":"Z3cxf"}}}}"#
            )
        );
    }
}
