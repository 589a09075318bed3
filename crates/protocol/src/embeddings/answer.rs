//! Writes answers to embedding requests in the form and encoding that the client asked for.

use bytes::Bytes;

use super::contents_answer::ContentsAnswer;
use super::list_answer::{ListAnswer, each_vector};
use super::request::{Encoding, Form};
use super::shown_usage::shown_usage;
use super::vector;
use crate::byte_queue::ByteQueue;
use crate::generate;
use crate::json::patch::{self, Edit};
use crate::json::write::object;
use crate::json::{Raw, Shape, utf8, write_string};
use crate::native::{Answer, UnusableAnswer};
use crate::tool::ToolCalls;
use crate::usage::Usage;

pub(super) struct ExpectedAnswer<'a> {
    pub(super) encoding: Encoding,
    /// The public model id.
    pub(super) model: &'a str,
    /// The estimated input tokens, for answers without usage.
    pub(super) input_tokens: u64,
}

/// A usage report, unless its input is zero. No request is empty, so zero means unknown.
fn nonzero_input(usage: Usage) -> Option<Usage> {
    (usage.input_total() > 0).then_some(usage)
}

/// Rewrites an answer of the list form for a client of the list form. Members that
/// identify the upstream and vectors in the wrong encoding are replaced. A missing model or usage is
/// added.
pub(super) fn rewrite_list(
    body: &Bytes,
    expected: &ExpectedAnswer<'_>,
) -> Result<Answer, UnusableAnswer> {
    let text = utf8(body)?;
    let mut model = Vec::new();
    write_string(&mut model, expected.model);
    let mut seen = ListAnswer::read(text, &model)?;
    let data = seen.vectors(expected.model)?;
    let mut edits = std::mem::take(&mut seen.edits);
    let mut missing = Vec::new();
    if let Some(named) = seen.model {
        // `ListAnswer::read` has already replaced a model that is a string.
        if named.shape() != Shape::String {
            edits.push(Edit::replace(named.span(), model.clone()));
        }
    } else {
        missing.extend_from_slice(b"\"model\":");
        missing.extend_from_slice(&model);
        missing.push(b',');
    }
    let usage = seen.usage();
    if let (Some(reported), Some(_)) = (seen.usage, usage) {
        edits.extend(shown_usage(reported, expected.model));
    } else {
        let mut estimate = Vec::new();
        write_usage(&mut estimate, expected.input_tokens);
        if let Some(reported) = seen.usage {
            edits.push(Edit::replace(reported.span(), estimate));
        } else {
            missing.extend_from_slice(b"\"usage\":");
            missing.extend_from_slice(&estimate);
            missing.push(b',');
        }
    }
    if !missing.is_empty() {
        edits.push(Edit::insert(seen.inside, missing));
    }
    let mut encoded = Vec::new();
    each_vector(data, &model, &mut edits, |vector| {
        let other = match (expected.encoding, vector.shape()) {
            (Encoding::Base64, Shape::Array) => vector::to_base64(vector)?,
            (Encoding::Float, Shape::String) => vector::to_numbers(inside(vector))?,
            _ => return Ok(()),
        };
        encoded.push(Edit::replace(vector.span(), other));
        Ok(())
    })?;
    edits.append(&mut encoded);
    let mut pieces = ByteQueue::new();
    patch::apply_to(body, edits, &mut pieces);
    let has_report = seen.usage.is_some_and(|usage| !usage.is_null());
    Ok(answer(pieces, usage, has_report && usage.is_none()))
}

/// Converts an answer of the contents form for a client of the list form.
pub(super) fn list_of_contents(
    body: &Bytes,
    expected: &ExpectedAnswer<'_>,
) -> Result<Answer, UnusableAnswer> {
    let text = utf8(body)?;
    let found = ContentsAnswer::read(text, expected.model)?;
    let usage = found
        .usage
        .and_then(generate::read_usage)
        .and_then(nonzero_input);
    let mut out = b"{\"object\":\"list\",\"data\":[".to_vec();
    for (index, values) in found.vectors.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let head = format!("{{\"object\":\"embedding\",\"index\":{index},\"embedding\":");
        out.extend_from_slice(head.as_bytes());
        match expected.encoding {
            Encoding::Float => out.extend_from_slice(values.text().as_bytes()),
            Encoding::Base64 => out.extend(vector::to_base64(*values)?),
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"model\":");
    write_string(&mut out, expected.model);
    out.extend_from_slice(b",\"usage\":");
    let tokens = usage.map_or(expected.input_tokens, |usage| usage.input_total());
    write_usage(&mut out, tokens);
    out.push(b'}');
    Ok(answer(ByteQueue::from(out), usage, false))
}

/// Converts an answer of the list form for a client of the contents form.
pub(super) fn contents_of_list(
    body: &Bytes,
    form: Form,
    expected: &ExpectedAnswer<'_>,
) -> Result<Answer, UnusableAnswer> {
    let text = utf8(body)?;
    let seen = ListAnswer::read(text, &[])?;
    let data = seen.vectors(expected.model)?;
    let mut vectors = Vec::new();
    each_vector(data, &[], &mut Vec::new(), |vector| {
        vectors.push(match vector.shape() {
            Shape::String => vector::to_numbers(inside(vector))?,
            _ => vector.text().as_bytes().to_vec(),
        });
        Ok(())
    })?;
    let write = |out: &mut Vec<u8>, values: &[u8]| {
        out.extend_from_slice(b"{\"values\":");
        out.extend_from_slice(values);
        out.push(b'}');
    };
    let usage = seen.usage();
    let tokens = usage.map_or(expected.input_tokens, |usage| usage.input_total());
    let mut out = Vec::new();
    object(&mut out, |it| {
        if form == Form::Content {
            let first = vectors.first().map_or(&b"[]"[..], Vec::as_slice);
            it.value("embedding", |out| write(out, first));
        } else {
            it.array("embeddings", |list| {
                for values in &vectors {
                    list.value(|out| write(out, values));
                }
            });
        }
        it.object("usageMetadata", |it| {
            it.number("promptTokenCount", tokens)
                .number("totalTokenCount", tokens);
        });
    });
    Ok(answer(ByteQueue::from(out), usage, false))
}

/// Passes an answer of the contents form to a client of that form, without the upstream's identity.
pub(super) fn pass_contents(
    body: &Bytes,
    expected: &ExpectedAnswer<'_>,
) -> Result<Answer, UnusableAnswer> {
    let found = ContentsAnswer::read(utf8(body)?, expected.model)?;
    let usage = found
        .usage
        .and_then(generate::read_usage)
        .and_then(nonzero_input);
    let mut pieces = ByteQueue::new();
    patch::apply_to(body, found.edits, &mut pieces);
    Ok(answer(pieces, usage, false))
}

fn inside(string: Raw<'_>) -> &str {
    string.string().map_or("", |text| text.raw())
}

fn write_usage(out: &mut Vec<u8>, tokens: u64) {
    object(out, |it| {
        it.number("prompt_tokens", tokens)
            .number("total_tokens", tokens);
    });
}

fn answer(pieces: ByteQueue, usage: Option<Usage>, usage_malformed: bool) -> Answer {
    Answer {
        pieces,
        usage,
        usage_malformed,
        output_tokens_counted: 0,
        seconds: None,
        tools: ToolCalls::default(),
        pictures: None,
        withheld: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: ExpectedAnswer<'_> = ExpectedAnswer {
        encoding: Encoding::Float,
        model: "maker/m",
        input_tokens: 9,
    };

    fn rewritten(body: &str, encoding: Encoding) -> (String, Option<u64>) {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let expected = ExpectedAnswer {
            encoding,
            ..EXPECTED
        };
        let answer = rewrite_list(&body, &expected).unwrap();
        let text = String::from_utf8(answer.pieces.into_bytes().to_vec()).unwrap();
        (text, answer.usage.map(|usage| usage.input))
    }

    #[test]
    fn only_the_model_changes() {
        let body = r#"{ "object":"list","data":[{"embedding":[0.10, -2e-3],"index":0,"x":null}],
            "model" : "hidden-1","usage":{"prompt_tokens":5,"total_tokens":5}} "#;
        let expected = body.replace("hidden-1", "maker/m");
        assert_eq!(rewritten(body, Encoding::Float), (expected, Some(5)));
    }

    #[test]
    fn vectors_do_not_identify_the_upstream() {
        let body = r#"{"id":"emb-1","object":"list","data":[{"id":"v1","embedding":[1],"model":"hidden-1","index":0,"meta":{"request_id":"r","n":1}}],"model":"hidden-1","request_id":"r-1","provider":"Acme","usage":{"prompt_tokens":5}}"#;
        assert_eq!(
            rewritten(body, Encoding::Float).0,
            r#"{"object":"list","data":[{"embedding":[1],"model":"maker/m","index":0,"meta":{"n":1}}],"model":"maker/m","usage":{"prompt_tokens":5}}"#
        );
        let body = r#"{"responseId":"r","embeddings":[{"id":"x","values":[1],"statistics":{"modelVersion":"hidden-1"}}],"modelVersion":"hidden-1"}"#;
        let answer = pass_contents(&Bytes::from_static(body.as_bytes()), &EXPECTED).unwrap();
        assert_eq!(
            answer.pieces.into_bytes(),
            r#"{"embeddings":[{"values":[1],"statistics":{"modelVersion":"maker/m"}}],"modelVersion":"maker/m"}"#
        );
    }

    #[test]
    fn the_upstreams_cost_is_not_shown() {
        let body = r#"{"data":[{"embedding":[1]}],"model":"h","usage":{"cost":0.1,"prompt_tokens":5,"request_id":"r","cost_details":{"x":1}}}"#;
        let expected =
            r#"{"data":[{"embedding":[1]}],"model":"maker/m","usage":{"prompt_tokens":5}}"#;
        assert_eq!(
            rewritten(body, Encoding::Float),
            (expected.to_owned(), Some(5))
        );
        let body = r#"{"data":[{"embedding":[1]}],"usage":{"cost":1,"request_id":"r"}}"#;
        let (text, _) = rewritten(body, Encoding::Float);
        assert!(
            text.ends_with(r#""usage":{"prompt_tokens":9,"total_tokens":9}}"#),
            "{text}"
        );
        let body = r#"{"embedding":{"values":[1]},"usageMetadata":{"promptTokenCount":3,"cost":1,"request_id":"r"}}"#;
        let answer = pass_contents(&Bytes::from_static(body.as_bytes()), &EXPECTED).unwrap();
        assert_eq!(answer.usage.unwrap().input, 3);
        assert_eq!(
            answer.pieces.into_bytes(),
            r#"{"embedding":{"values":[1]},"usageMetadata":{"promptTokenCount":3}}"#
        );
    }

    #[test]
    fn vectors_come_in_the_encoding_that_was_asked_for() {
        let floats = r#"{"data":[{"embedding":[0.5,-1]}],"model":"h","usage":{"prompt_tokens":1}}"#;
        let base64 =
            r#"{"data":[{"embedding":"AAAAPwAAgL8="}],"model":"h","usage":{"prompt_tokens":1}}"#;
        for (body, encoding, expected) in [
            (floats, Encoding::Base64, base64),
            (base64, Encoding::Float, floats),
            (floats, Encoding::Float, floats),
            (base64, Encoding::Base64, base64),
        ] {
            let expected = expected.replace("\"h\"", "\"maker/m\"");
            assert_eq!(rewritten(body, encoding).0, expected);
        }
    }

    #[test]
    fn missing_usage_is_the_estimate() {
        for body in [
            r#"{"data":[{"embedding":[1]}]}"#,
            r#"{"data":[{"embedding":[1]}],"usage":null}"#,
            r#"{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":-4}}"#,
            r#"{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":0,"total_tokens":0}}"#,
        ] {
            let (text, usage) = rewritten(body, Encoding::Float);
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(usage, None);
            assert_eq!(json["usage"]["prompt_tokens"], 9, "{text}");
            assert_eq!(json["model"], "maker/m");
        }
        // No request is empty, so a report of zero means unknown.
        for usage in ["{}", r#"{"promptTokenCount":0}"#] {
            let body = format!(r#"{{"embedding":{{"values":[1]}},"usageMetadata":{usage}}}"#);
            let body = Bytes::from(body);
            assert_eq!(pass_contents(&body, &EXPECTED).unwrap().usage, None);
            let list = list_of_contents(&body, &EXPECTED).unwrap();
            assert_eq!(list.usage, None, "{usage}");
        }
    }

    #[test]
    fn an_answer_without_vectors_is_refused() {
        for body in [
            "{}",
            r#"{"data":[]}"#,
            r#"{"data":null}"#,
            r#"{"error":{"message":"x"},"data":[{"embedding":[1]}]}"#,
            r#"{"data":[{"embedding":"***"}]}"#,
            "[]",
            "",
        ] {
            let body = Bytes::copy_from_slice(body.as_bytes());
            assert!(rewrite_list(&body, &EXPECTED).is_err(), "{body:?}");
            assert!(list_of_contents(&body, &EXPECTED).is_err(), "{body:?}");
        }
    }

    #[test]
    fn contents_and_lists_are_turned_into_one_another() {
        let contents = r#"{"embeddings":[{"values":[0.5, -1]},{"values":[2]}],
            "usageMetadata":{"promptTokenCount":3}}"#;
        let body = Bytes::copy_from_slice(contents.as_bytes());
        let list = list_of_contents(&body, &EXPECTED).unwrap();
        assert_eq!(list.usage.unwrap().input, 3);
        let list = list.pieces.into_bytes();
        insta::assert_snapshot!(std::str::from_utf8(&list).unwrap(), @r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5, -1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"maker/m","usage":{"prompt_tokens":3,"total_tokens":3}}"#);
        let back = contents_of_list(&list, Form::Contents, &EXPECTED).unwrap();
        let back = back.pieces.into_bytes();
        insta::assert_snapshot!(std::str::from_utf8(&back).unwrap(), @r#"{"embeddings":[{"values":[0.5, -1]},{"values":[2]}],"usageMetadata":{"promptTokenCount":3,"totalTokenCount":3}}"#);
        let one = contents_of_list(&list, Form::Content, &EXPECTED).unwrap();
        let one = one.pieces.into_bytes();
        assert!(one.starts_with(br#"{"embedding":{"values":[0.5, -1]}"#));
    }
}
