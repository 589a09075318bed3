//! Reads and writes the requests and answers of the token counting endpoints of three dialects.

use bytes::Bytes;
use serde_json::Value;

use super::request::{read_head, read_named_head, write_request};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::guard;
use crate::json::write::{self, Object};
use crate::json::{Members, Spelling, write_string};
use crate::messages;
use crate::request_head::Head;

/// The member of a Generate Content count that holds the request whose tokens are counted.
const WRAPPED: &str = "generate_content_request";

/// Kinds of content that Generate Content counts separately.
const MODALITIES: [&str; 6] = [
    "MODALITY_UNSPECIFIED",
    "TEXT",
    "IMAGE",
    "VIDEO",
    "AUDIO",
    "DOCUMENT",
];

/// Members that the counting endpoint of a dialect accepts, in snake case. Vendors refuse others,
/// such as an output limit.
fn accepted_members(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Messages => &[
            "model",
            "messages",
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "cache_control",
            "context_management",
            "mcp_servers",
        ],
        Dialect::Responses => &[
            "model",
            "input",
            "instructions",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "reasoning",
            "text",
            "truncation",
        ],
        Dialect::Generate => &[
            "contents",
            "system_instruction",
            "tools",
            "tool_config",
            "generation_config",
            "safety_settings",
            "cached_content",
        ],
        Dialect::Chat | Dialect::Interactions => &[],
    }
}

/// A request whose tokens are to be counted.
#[derive(Debug)]
pub struct CountRequest {
    /// The head of the request, with the count of its input.
    pub head: Head,
    /// The request that would be answered, without the wrapper of the counting endpoint.
    pub body: Bytes,
}

/// Reads a request and applies the refusals of the endpoint that would answer it. `named` is the
/// model, if the path names it.
pub fn read_count_request(
    dialect: Dialect,
    body: &Bytes,
    named: Option<&str>,
) -> Result<CountRequest, Failure> {
    if let Some(model) = named {
        let body = unwrapped(body)?;
        let head = read_named_head(&body, model, false)?;
        return Ok(CountRequest { head, body });
    }
    let head = match dialect {
        Dialect::Messages => messages::read_counted_head(body)?,
        dialect => read_head(dialect, body)?,
    };
    let body = body.clone();
    Ok(CountRequest { head, body })
}

/// The request inside a Generate Content count, or the body itself if it is not wrapped.
fn unwrapped(body: &Bytes) -> Result<Bytes, Failure> {
    if body.trim_ascii().is_empty() {
        return Ok(body.clone());
    }
    let members = Members::read(body, Spelling::SnakeOrCamel)?;
    let Some(request) = members.object(WRAPPED)? else {
        return Ok(body.clone());
    };
    guard::routing(&members)?;
    if members.get("contents")?.is_some() {
        let message = "`contents` and `generateContentRequest` exclude each other.";
        return Err(Failure::invalid(message).param("contents"));
    }
    Ok(body.slice(request.span()))
}

/// Writes the request for an upstream's counting endpoint: with the upstream's name for the model,
/// and without members that only affect an answer.
pub fn write_count_request(
    dialect: Dialect,
    counted: &CountRequest,
    upstream_model: &str,
) -> Result<Bytes, Failure> {
    let request = write_request(&counted.body, &counted.head, upstream_model);
    let is_wrapped = dialect == Dialect::Generate;
    let spelling = if is_wrapped {
        Spelling::SnakeOrCamel
    } else {
        Spelling::One
    };
    let members = Members::read(&request, spelling)?;
    let mut out = Vec::with_capacity(request.len() + 64);
    out.push(b'{');
    if is_wrapped {
        out.extend_from_slice(br#""generateContentRequest":{"model":"#);
        write_string(&mut out, &format!("models/{upstream_model}"));
    }
    for name in accepted_members(dialect) {
        let Some(value) = members.get(name)? else {
            continue;
        };
        if !out.ends_with(b"{") {
            out.push(b',');
        }
        write_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.text().as_bytes());
    }
    out.extend_from_slice(if is_wrapped { b"}}" } else { b"}" });
    Ok(out.into())
}

/// The number of tokens of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenCount {
    tokens: u64,
    /// Generate Content: tokens by kind of content.
    by_modality: Vec<(&'static str, u64)>,
    /// Generate Content: tokens that are in a cache.
    cached: Option<u64>,
}

impl TokenCount {
    /// A count that we made ourselves.
    pub fn new(tokens: u64) -> Self {
        Self {
            tokens,
            by_modality: Vec::new(),
            cached: None,
        }
    }

    /// Reads an upstream's answer. Takes only the figures, so that the upstream's identity is not
    /// passed on.
    pub fn read(dialect: Dialect, body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        if dialect != Dialect::Generate {
            return value["input_tokens"].as_u64().map(Self::new);
        }
        let details = value["promptTokensDetails"].as_array();
        let by_modality = details.into_iter().flatten().filter_map(|detail| {
            let named = detail["modality"].as_str()?;
            let modality = MODALITIES.into_iter().find(|known| *known == named)?;
            Some((modality, detail["tokenCount"].as_u64()?))
        });
        Some(Self {
            tokens: value["totalTokens"].as_u64()?,
            by_modality: by_modality.collect(),
            cached: value["cachedContentTokenCount"].as_u64(),
        })
    }

    /// Writes the answer in the form of the dialect's endpoint.
    pub fn write(&self, dialect: Dialect) -> Vec<u8> {
        let mut out = Vec::new();
        write::object(&mut out, |object| match dialect {
            Dialect::Generate => self.write_generate(object),
            Dialect::Responses => {
                object
                    .text("object", "response.input_tokens")
                    .number("input_tokens", self.tokens);
            }
            Dialect::Chat | Dialect::Messages | Dialect::Interactions => {
                object.number("input_tokens", self.tokens);
            }
        });
        out
    }

    fn write_generate(&self, object: &mut Object<'_>) {
        object.number("totalTokens", self.tokens);
        if let Some(cached) = self.cached {
            object.number("cachedContentTokenCount", cached);
        }
        if self.by_modality.is_empty() {
            return;
        }
        object.array("promptTokensDetails", |details| {
            for (modality, tokens) in &self.by_modality {
                details.object(|detail| {
                    detail
                        .text("modality", modality)
                        .number("tokenCount", *tokens);
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dialect: Dialect, body: &str) -> Result<CountRequest, Failure> {
        let named = (dialect == Dialect::Generate).then_some("maker/m");
        read_count_request(dialect, &Bytes::from(body.to_owned()), named)
    }

    #[test]
    fn a_request_goes_on_with_what_its_count_depends_on() {
        let sent = [
            (
                Dialect::Messages,
                r#"{"model":"maker/m","max_tokens":9,"stream":true,"temperature":1,"messages":[{"role":"user","content":"hi"}],"system":"s","tools":[]}"#,
            ),
            (
                Dialect::Messages,
                r#"{"model":"maker/m","messages":[{"role":"user","content":"hi"}],"thread":null}"#,
            ),
            (
                Dialect::Responses,
                r#"{"input":"hi","model":"maker/m","max_output_tokens":1,"user":"u","instructions":"i"}"#,
            ),
            (
                Dialect::Generate,
                r#"{"contents":[{"parts":[{"text":"hi"}]}],"model":"models/maker/m"}"#,
            ),
            (
                Dialect::Generate,
                r#" {"generateContentRequest": {"model":"models/maker/m","contents":[{"parts":[{"text":"hi"}]}],"system_instruction":{"parts":[]},"generationConfig":{"maxOutputTokens":1}}}"#,
            ),
        ]
        .map(|(dialect, body)| {
            let counted = read(dialect, body).unwrap();
            let sent = write_count_request(dialect, &counted, "up-1").unwrap();
            String::from_utf8(sent.to_vec()).unwrap()
        });
        insta::assert_snapshot!(sent.join("\n"));
    }

    #[test]
    fn a_wrapped_request_counts_as_the_bare_one() {
        let bare = r#"{"contents":[{"parts":[{"text":"one two three"}]}]}"#;
        let wrapped = format!(r#"{{"generate_content_request":{bare}}}"#);
        let tokens = |body: &str| read(Dialect::Generate, body).unwrap().head.input.tokens;
        assert_eq!(tokens(bare), tokens(&wrapped));
    }

    #[test]
    fn requests_that_would_be_refused_are_not_counted() {
        for (dialect, body) in [
            (Dialect::Messages, ""),
            (Dialect::Messages, "[]"),
            (
                Dialect::Messages,
                r#"{"messages":[{"role":"user","content":"hi"}]}"#,
            ),
            (Dialect::Messages, r#"{"model":"maker/m","messages":[]}"#),
            (
                Dialect::Messages,
                r#"{"model":"maker/m","messages":[{"role":"user","content":"hi"}],"max_tokens":"9"}"#,
            ),
            (
                Dialect::Messages,
                r#"{"model":"maker/m","messages":[{"role":"user","content":"hi"}],"provider":"x"}"#,
            ),
            (Dialect::Responses, r#"{"model":"maker/m"}"#),
            (
                Dialect::Responses,
                r#"{"model":"maker/m","input":"hi","previous_response_id":"r"}"#,
            ),
            (Dialect::Generate, "{}"),
            (Dialect::Generate, r#"{"contents":[]}"#),
            (Dialect::Generate, r#"{"generateContentRequest":{}}"#),
            (
                Dialect::Generate,
                r#"{"generateContentRequest":{"model":"models/other","contents":[{"parts":[]}]}}"#,
            ),
            (
                Dialect::Generate,
                r#"{"contents":[{"parts":[]}],"generateContentRequest":{"contents":[{"parts":[]}]}}"#,
            ),
            (
                Dialect::Generate,
                r#"{"provider":"x","generateContentRequest":{"contents":[{"parts":[]}]}}"#,
            ),
        ] {
            let failure = read(dialect, body).unwrap_err();
            assert_eq!(failure.status(), 400, "{dialect:?} {body}");
        }
    }

    #[test]
    fn answers_are_those_of_the_endpoints() {
        let written = [
            (Dialect::Messages, r#"{"input_tokens":12,"model":"up-1"}"#),
            (
                Dialect::Responses,
                r#"{"object":"response.input_tokens","input_tokens":12}"#,
            ),
            (
                Dialect::Generate,
                r#"{"totalTokens":12,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10},{"modality":"up-1","tokenCount":1},{"modality":"IMAGE","tokenCount":2}]}"#,
            ),
            (
                Dialect::Generate,
                r#"{"totalTokens":12,"cachedContentTokenCount":3}"#,
            ),
        ]
        .map(|(dialect, body)| {
            let count = TokenCount::read(dialect, body.as_bytes()).unwrap();
            String::from_utf8(count.write(dialect)).unwrap()
        });
        insta::assert_snapshot!(written.join("\n"), @r#"
        {"input_tokens":12}
        {"object":"response.input_tokens","input_tokens":12}
        {"totalTokens":12,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10},{"modality":"IMAGE","tokenCount":2}]}
        {"totalTokens":12,"cachedContentTokenCount":3}
        "#);
        for (dialect, body) in [
            (Dialect::Messages, "{}"),
            (Dialect::Messages, "<html>"),
            (Dialect::Messages, r#"{"input_tokens":-1}"#),
            (Dialect::Responses, r#"{"input_tokens":"12"}"#),
            (Dialect::Generate, r#"{"input_tokens":12}"#),
        ] {
            assert_eq!(TokenCount::read(dialect, body.as_bytes()), None, "{body}");
        }
    }
}
