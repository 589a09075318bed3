//! Reads and writes the list form: one or several inputs, each a text or a list of tokens.

use bytes::Bytes;

use super::request::{Contents, Encoding, Form, Request};
use crate::canon::Dropped;
use crate::count::{self, InputCount};
use crate::failure::Failure;
use crate::guard;
use crate::json::write::object;
use crate::json::{Cursor, Integer, Members, Raw, Shape, Spelling, SyntaxError};

/// Members that have a counterpart in the contents form, and the encoding, which the gateway itself
/// applies to the answer.
const CARRIED: [&str; 4] = ["model", "input", "dimensions", "encoding_format"];

pub(super) fn read(body: &Bytes) -> Result<Request, Failure> {
    if body.trim_ascii().is_empty() {
        return Err(Failure::invalid(
            "The body is empty; it must be a JSON object.",
        ));
    }
    let members = Members::read(body, Spelling::One)?;
    let Some(model) = members.string("model")? else {
        return Err(Failure::invalid("`model` is required.").param("model"));
    };
    guard::model_id(&model)?;
    let Some(input) = members.get("input")? else {
        return Err(Failure::invalid("`input` is required.").param("input"));
    };
    let input = measure(input)?.of_body(body.len());
    guard::routing(&members)?;
    guard::service_tier(&members)?;
    // The upstream refuses unknown values.
    let encoding = members.get("encoding_format")?.and_then(|it| it.string());
    let encoding = match encoding {
        Some(text) if text.is("base64") => Encoding::Base64,
        _ => Encoding::Float,
    };
    let model_span = members.get("model")?.map(|value| value.span());
    Ok(Request {
        form: Form::List,
        model: model.into_owned(),
        input,
        encoding,
        body: body.clone(),
        model_spans: model_span.into_iter().collect(),
    })
}

/// Refuses empty inputs, and counts the tokens of the others.
fn measure(input: Raw<'_>) -> Result<InputCount, Failure> {
    if input.is_empty() {
        return Err(empty("`input` must not be empty."));
    }
    let whole = count::count_value(input);
    if input.shape() != Shape::Array {
        return Ok(whole);
    }
    let mut any_empty = false;
    let mut tokens: u64 = 0;
    Cursor::new(input.text()).array(|cursor| {
        let item = cursor.value()?;
        any_empty |= item.is_empty();
        tokens = tokens.saturating_add(match item.shape() {
            // A token.
            Shape::Number => 1,
            Shape::Array => items(item)?,
            _ => count::count_value(item).tokens,
        });
        Ok::<(), SyntaxError>(())
    })?;
    if any_empty {
        return Err(empty("An item of `input` is empty."));
    }
    Ok(InputCount { tokens, ..whole })
}

fn items(list: Raw<'_>) -> Result<u64, SyntaxError> {
    let mut count: u64 = 0;
    Cursor::new(list.text()).array(|cursor| {
        count = count.saturating_add(1);
        cursor.value().map(drop)
    })?;
    Ok(count)
}

fn empty(message: &'static str) -> Failure {
    Failure::invalid(message).param("input")
}

/// The part of a request that the contents form can express. The rest is reported as dropped.
pub(super) fn contents(request: &Request, dropped: &mut Dropped) -> Result<Contents, Failure> {
    let members = Members::read(&request.body, Spelling::One)?;
    for member in members.iter() {
        if !CARRIED.contains(&&*member.name) && !member.value.is_null() {
            dropped.name(&member.name);
        }
    }
    let mut texts = Vec::new();
    if let Some(input) = members.get("input")? {
        if input.shape() == Shape::Array {
            Cursor::new(input.text()).array(|cursor| {
                texts.push(text(cursor.value()?)?);
                Ok::<(), Failure>(())
            })?;
        } else {
            texts.push(text(input)?);
        }
    }
    let dimensions = members.integer("dimensions")?;
    Ok(Contents {
        texts,
        dimensions: dimensions.map(Integer::saturating),
    })
}

/// The text of an input. Tokens are refused, because they are not text and belong to one model.
fn text(input: Raw<'_>) -> Result<String, Failure> {
    let text = input.string().ok_or_else(|| {
        let message = "This model takes `input` as text: a string or an array of strings.";
        Failure::invalid(message).param("input")
    })?;
    Ok(text.decode_lossy().into_owned())
}

/// Writes a request that asks for vectors as numbers, which every upstream of this form supports.
pub(super) fn write(contents: &Contents, upstream_model: &str) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.text("model", upstream_model);
        it.array("input", |list| {
            for text in &contents.texts {
                list.text(text);
            }
        });
        if let Some(dimensions) = contents.dimensions {
            it.number("dimensions", dimensions);
        }
        it.text("encoding_format", "float");
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(body: &str) -> Result<Request, Failure> {
        read(&Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn only_emptiness_is_refused() {
        for (input, refused) in [
            (r#""hello""#, false),
            (r#"["a","b"]"#, false),
            ("[1,2,3]", false),
            ("[[1,2],[3]]", false),
            (r#"" ""#, false),
            (r#"[{"type":"text"}]"#, false),
            (r#""""#, true),
            ("[]", true),
            (r#"["a",""]"#, true),
            ("[[1],[]]", true),
            ("null", true),
        ] {
            let body = format!(r#"{{"model":"m/x","input":{input},"dimensions":-5}}"#);
            let failure = read_text(&body).err();
            assert_eq!(failure.is_some(), refused, "{input}");
            if let Some(failure) = failure {
                assert_eq!(failure.param.as_deref(), Some("input"));
            }
        }
        assert!(read_text(r#"{"model":"m/x"}"#).is_err());
        assert!(read_text(r#"{"input":"x"}"#).is_err());
    }

    #[test]
    fn tokens_are_counted_in_every_form() {
        let tokens = |input: &str| {
            let body = format!(r#"{{"model":"m/x","input":{input}}}"#);
            read_text(&body).unwrap().input.tokens
        };
        assert_eq!(tokens("[5,6,7]"), 3);
        assert_eq!(tokens("[[5,6,7],[8]]"), 4);
        assert_eq!(tokens(r#""hello""#), tokens(r#"["hello"]"#));
        assert!(tokens(r#"["one two","three four"]"#) > tokens(r#""one two""#));
    }
}
