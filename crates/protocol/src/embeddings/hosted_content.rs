//! Writes and reads `:embedContent` as a cloud vendor offers it: one content item, with its
//! settings in a separate object, and no batches.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::Contents;
use crate::failure::Failure;
use crate::json::write::object;
use crate::native::UnusableAnswer;

/// Writes a request. Accepts only one text, because several texts would be parts of one content item and
/// become one vector.
pub(super) fn write(contents: &Contents) -> Result<Vec<u8>, Failure> {
    let [text] = contents.texts.as_slice() else {
        let message = "This model takes one input per request.";
        return Err(Failure::invalid(message));
    };
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.object("content", |it| {
            it.text("role", "user").array("parts", |it| {
                it.object(|it| {
                    it.text("text", text);
                });
            });
        });
        if let Some(dimensions) = contents.dimensions {
            it.object("embedContentConfig", |it| {
                it.number("outputDimensionality", dimensions);
            });
        }
    });
    Ok(out)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    #[serde(borrow)]
    embedding: &'a RawValue,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
}

/// Converts an answer for a client whose request was a batch of one item.
pub(super) fn to_batch(body: &[u8]) -> Result<Bytes, UnusableAnswer> {
    let answer: Answer<'_> = serde_json::from_slice(body)
        .map_err(|_| UnusableAnswer::malformed("the answer has no embedding"))?;
    let mut out = Vec::with_capacity(body.len() + 16);
    object(&mut out, |it| {
        it.array("embeddings", |it| {
            it.raw(answer.embedding.get());
        });
        if let Some(usage) = answer.usage_metadata {
            it.raw("usageMetadata", usage.get());
        }
    });
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_content_and_its_settings_apart() {
        let contents = |texts: &[&str], dimensions| Contents {
            texts: texts.iter().map(|it| (*it).to_owned()).collect(),
            dimensions,
        };
        for (dimensions, expected) in [
            (
                Some(8),
                r#"{"content":{"role":"user","parts":[{"text":"a"}]},"embedContentConfig":{"outputDimensionality":8}}"#,
            ),
            (
                None,
                r#"{"content":{"role":"user","parts":[{"text":"a"}]}}"#,
            ),
        ] {
            let written = write(&contents(&["a"], dimensions)).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
        for texts in [&[][..], &["a", "b"]] {
            assert_eq!(write(&contents(texts, None)).unwrap_err().status(), 400);
        }
    }

    #[test]
    fn an_answer_becomes_a_batch_of_one() {
        let body = br#"{"embedding":{"values":[0.50]},"usageMetadata":{"promptTokenCount":2},"truncated":false}"#;
        let batch = to_batch(body).unwrap();
        assert_eq!(
            std::str::from_utf8(&batch).unwrap(),
            r#"{"embeddings":[{"values":[0.50]}],"usageMetadata":{"promptTokenCount":2}}"#
        );
        assert!(to_batch(b"{}").is_err() && to_batch(b"").is_err());
    }
}
