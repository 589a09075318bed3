//! Writes and reads the instances form, `:predict`, which a cloud vendor uses instead of the contents form.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::{Contents, Form};
use crate::json::write::object;
use crate::unusable_answer::UnusableAnswer;

pub(super) fn write(contents: &Contents) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.array("instances", |list| {
            for text in &contents.texts {
                list.object(|it| {
                    it.text("content", text);
                });
            }
        });
        if let Some(dimensions) = contents.dimensions {
            it.object("parameters", |it| {
                it.number("outputDimensionality", dimensions);
            });
        }
    });
    out
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    predictions: Vec<Prediction<'a>>,
}

#[derive(Deserialize)]
struct Prediction<'a> {
    #[serde(borrow)]
    embeddings: Embedding<'a>,
}

#[derive(Deserialize)]
struct Embedding<'a> {
    #[serde(borrow)]
    values: &'a RawValue,
    #[serde(borrow, default)]
    statistics: Statistics<'a>,
}

#[derive(Default, Deserialize)]
struct Statistics<'a> {
    #[serde(borrow, default)]
    token_count: Option<&'a RawValue>,
}

/// Converts an answer to the contents form: one vector for the form `Content`, otherwise a list.
pub(super) fn to_contents(body: &[u8], form: Form) -> Result<Bytes, UnusableAnswer> {
    let answer: Answer<'_> = serde_json::from_slice(body)
        .map_err(|_| UnusableAnswer::malformed("the answer has no predictions"))?;
    let vectors = || answer.predictions.iter().map(|it| &it.embeddings);
    let mut out = Vec::with_capacity(body.len());
    if let (Form::Content, [one]) = (form, answer.predictions.as_slice()) {
        out.extend_from_slice(b"{\"embedding\":");
        write_vector(one.embeddings.values, &mut out);
    } else {
        out.extend_from_slice(b"{\"embeddings\":[");
        for (index, vector) in vectors().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_vector(vector.values, &mut out);
        }
        out.push(b']');
    }
    // If some vectors lack a count, the sum of the others is too low to report.
    let tokens: Option<Vec<u64>> = vectors()
        .map(|it| count(it.statistics.token_count?))
        .collect();
    if let Some(tokens) = tokens.filter(|tokens| !tokens.is_empty()) {
        let total = tokens.into_iter().fold(0, u64::saturating_add);
        let usage = format!(",\"usageMetadata\":{{\"promptTokenCount\":{total}}}");
        out.extend_from_slice(usage.as_bytes());
    }
    out.push(b'}');
    Ok(out.into())
}

fn write_vector(values: &RawValue, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"values\":");
    out.extend_from_slice(values.get().as_bytes());
    out.push(b'}');
}

/// A count, which may be written as `3.0`.
fn count(number: &RawValue) -> Option<u64> {
    let (whole, fraction) = number.get().split_once('.').unwrap_or((number.get(), ""));
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    is_whole.then(|| whole.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_one_of_the_contents_form() {
        let two = r#"{"predictions":[
            {"embeddings":{"statistics":{"truncated":false,"token_count":6},"values":[-0.06, 1e-3]}},
            {"embeddings":{"values":[0.5],"statistics":{"token_count":2.0}}}],
            "metadata":{"billableCharacterCount":31}}"#;
        let one = r#"{"predictions":[{"embeddings":{"values":[0.5]}}]}"#;
        for (body, form, expected) in [
            (
                two,
                Form::Contents,
                r#"{"embeddings":[{"values":[-0.06, 1e-3]},{"values":[0.5]}],"usageMetadata":{"promptTokenCount":8}}"#,
            ),
            (one, Form::Content, r#"{"embedding":{"values":[0.5]}}"#),
            (one, Form::Contents, r#"{"embeddings":[{"values":[0.5]}]}"#),
        ] {
            let written = to_contents(body.as_bytes(), form).unwrap();
            assert_eq!(std::str::from_utf8(&written).unwrap(), expected);
        }
        for bad in ["{}", "[]", r#"{"predictions":[{"embeddings":{}}]}"#] {
            assert!(
                to_contents(bad.as_bytes(), Form::Contents).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_request_has_an_instance_for_each_text() {
        let contents = Contents {
            texts: vec!["a \"b\"".to_owned(), "c".to_owned()],
            dimensions: Some(256),
        };
        assert_eq!(
            String::from_utf8(write(&contents)).unwrap(),
            r#"{"instances":[{"content":"a \"b\""},{"content":"c"}],"parameters":{"outputDimensionality":256}}"#
        );
    }
}
