//! Checks the frames of a client against the rules of the operator, which not every session has.

use std::borrow::Cow;

use super::event::{Event, EventError, event_text};
use super::frame::{Frame, Verdict};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::request_head::{fetchable_urls, may_name_url};
use crate::tool::Tools;

/// The members of events that hold settings with tools, and the paths of the tools.
const SETTINGS: [(&str, &str); 2] = [("session", "session.tools"), ("response", "response.tools")];

/// The rules for the frames of one session.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionRules {
    /// Whether URLs are refused, because the upstream is in a private network and could fetch from its
    /// neighbours.
    pub refuses_urls: bool,
    /// Whether built-in tools are refused, because sessions have no prices for them.
    pub refuses_tools: bool,
}

impl SessionRules {
    /// Returns the refusal of a frame that violates a rule.
    pub(super) fn check(self, frame: Frame<'_>) -> Option<Verdict> {
        if !self.refuses_urls && !self.refuses_tools {
            return None;
        }
        let text = match frame {
            Frame::Text(text) => Cow::Borrowed(text),
            Frame::Binary(bytes) => event_text(bytes)?,
        };
        match Event::read(&text) {
            Ok(event) => {
                let failure = self.check_event(&text, &event).err()?;
                Some(Verdict::refuse(failure, event.id()))
            }
            // A lenient upstream may still read it.
            Err(EventError::NotAnEvent) if self.refuses_urls && may_name_url(&text) => {
                Some(Verdict::refuse(no_urls(), None))
            }
            Err(EventError::NotAnEvent) => None,
            Err(EventError::Unreadable(failure) | EventError::Ambiguous(failure)) => {
                Some(Verdict::refuse(failure, None))
            }
        }
    }

    fn check_event(self, text: &str, event: &Event<'_>) -> Result<(), Failure> {
        // Realtime events have the items of Responses.
        let has_urls = || fetchable_urls(Dialect::Responses, text.as_bytes(), 0);
        if self.refuses_urls && !has_urls()?.is_empty() {
            return Err(no_urls());
        }
        if !self.refuses_tools {
            return Ok(());
        }
        for (member, path) in SETTINGS {
            let Some(settings) = event.object(member)? else {
                continue;
            };
            let offered = Tools::by_type(&settings)
                .map_err(|_| Failure::invalid(format!("`{path}` must be an array.")).param(path))?;
            if let Some(tool) = offered.iter().next() {
                let name = tool.as_str();
                let why = format!("The built-in tool `{name}` is not offered in sessions.");
                return Err(Failure::unsupported_parameter(path, why));
            }
            if offered.has_unknown() {
                let why = "Sessions take only tools that the client runs.";
                return Err(Failure::unsupported_parameter(path, why));
            }
        }
        Ok(())
    }
}

fn no_urls() -> Failure {
    Failure::invalid("Sessions of this model take no URLs. Send the content instead.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(rules: SessionRules, frame: Frame<'_>) -> Option<(String, Option<String>)> {
        match rules.check(frame)? {
            Verdict::Refuse { failure, event_id } => Some((failure.message.to_string(), event_id)),
            Verdict::Relay | Verdict::Replace(_) => None,
        }
    }

    #[test]
    fn a_session_without_urls_refuses_them_wherever_an_upstream_fetches() {
        let rules = SessionRules {
            refuses_urls: true,
            ..SessionRules::default()
        };
        let image = r#"{"type":"conversation.item.create","event_id":"e1","item":{"type":"message","role":"user",
            "content":[{"type":"input_image","image_\u0075rl":"http://10.0.0.1/x"}]}}"#;
        let server = r#"{"type":"session.update","session":{"tools":[{"type":"mcp","server_url":"http://a.b"}]}}"#;
        let nested = ["[".repeat(200), "]".repeat(200)].concat();
        let deep = format!(r#"{{"item":{{"image_url":"http:\/\/a.b"}},"x":{nested}}}"#);
        let not_utf_8 = [image.trim_end_matches('}').as_bytes(), b",\"x\":\"\xff\"}}"].concat();
        for frame in [
            Frame::Text(image),
            Frame::Binary(image.as_bytes()),
            Frame::Text(server),
            Frame::Text(r#"{"item":{"image_url":"http://a.b"},}"#),
            Frame::Text(r#"{"item":{"image_url":"http:\/\/a.b"},}"#),
            Frame::Text("{'item':{'image_url':'http:a.b'}}"),
            Frame::Text(&deep),
            Frame::Binary(deep.as_bytes()),
            Frame::Binary(&not_utf_8),
            Frame::Text(r#"["http:\/\/a.b"]"#),
        ] {
            assert!(refusal(rules, frame).is_some(), "{frame:?}");
            assert_eq!(refusal(SessionRules::default(), frame), None);
        }
        let (_, event) = refusal(rules, Frame::Text(image)).unwrap();
        assert_eq!(event.as_deref(), Some("e1"));
        for harmless in [
            r#"{"item":{"content":[{"type":"input_text","text":"see http://a.b"}]}}"#,
            r#"{"item":{"content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}}"#,
            r#"{"item":{"type":"function_call_output","output":"http://a.b"}}"#,
            "not json",
        ] {
            assert_eq!(refusal(rules, Frame::Text(harmless)), None, "{harmless}");
        }
        assert_eq!(refusal(rules, Frame::Binary(b"audio://")), None);
    }

    #[test]
    fn a_session_without_built_in_tools_takes_functions_alone() {
        let rules = SessionRules {
            refuses_tools: true,
            ..SessionRules::default()
        };
        for refused in [
            r#"{"type":"session.update","session":{"tools":[{"type":"function","name":"f"},{"type":"web_search"}]}}"#,
            r#"{"type":"session.update","session":{"tools":[{"type":"x_\u0073earch"}]}}"#,
            r#"{"type":"response.create","response":{"tools":[{"type":"mcp","server_url":"http://a.b"}]}}"#,
            r#"{"type":"session.update","session":{},"session":{"tools":[{"type":"web_search"}]}}"#,
            r#"{"type":"session.update","session":{"tools":{"type":"web_search"}}}"#,
        ] {
            assert!(refusal(rules, Frame::Text(refused)).is_some(), "{refused}");
        }
        let function = r#"{"type":"session.update","session":{"tools":[{"type":"function","name":"web_search"}]}}"#;
        assert_eq!(refusal(rules, Frame::Text(function)), None);
    }
}
