//! Reads and writes the contents form: one content item, or a batch of items with their own
//! settings.

use bytes::Bytes;

use super::request::{Contents, Encoding, Form, Request};
use crate::canon::Dropped;
use crate::count::{self, InputCount};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::guard;
use crate::json::write::{Object, object};
use crate::json::{Cursor, Integer, Members, Raw, Shape, Spelling};
use crate::request_head;

/// Members that have a counterpart in the list form.
const CARRIED: [&str; 4] = ["model", "content", "outputDimensionality", "requests"];

pub(super) fn read(body: &Bytes, model: &str, batch: bool) -> Result<Request, Failure> {
    guard::model_id(model)?;
    if body.trim_ascii().is_empty() {
        return Err(Failure::invalid(
            "The body is empty; it must be a JSON object.",
        ));
    }
    let members = Members::read(body, Spelling::SnakeOrCamel)?;
    guard::routing(&members)?;
    guard::service_tier(&members)?;
    request_head::refuse_stored(Dialect::Generate, &members)?;
    let mut request = Request {
        form: if batch { Form::Contents } else { Form::Content },
        model: model.to_owned(),
        input: InputCount {
            tokens_max: Some(0),
            ..InputCount::default()
        },
        encoding: Encoding::Float,
        body: body.clone(),
        model_spans: Vec::new(),
    };
    each(&members, request.form, |_, one| {
        request.model_spans.extend(same_model(one, model)?);
        let content = one.object("content")?.filter(|content| !content.is_empty());
        let content = content.ok_or_else(|| no_content("`content` must not be empty."))?;
        let parts = Members::nested(content, "content.", Spelling::SnakeOrCamel)?;
        let parts = parts.array("parts")?.filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| no_content("`content.parts` must not be empty."))?;
        request.input = request.input.plus(count::count_value(parts));
        Ok(())
    })?;
    if request.input.tokens == 0 {
        let message = "`requests` must be an array with at least one item.";
        return Err(Failure::invalid(message).param("requests"));
    }
    request.input = request.input.of_body(body.len());
    Ok(request)
}

fn no_content(message: &'static str) -> Failure {
    Failure::invalid(message).param("content")
}

/// Calls a function with each request: the body itself, or each item of a batch. The function's
/// first argument is the prefix of member names in reports of dropped members.
fn each<'a>(
    members: &Members<'a>,
    form: Form,
    mut one: impl FnMut(&str, &Members<'a>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if form == Form::Content {
        return one("", members);
    }
    let Some(list) = members.array("requests")? else {
        return Ok(());
    };
    let mut index = 0;
    let offset = list.span().start;
    Cursor::new(list.text()).array(|cursor| {
        let request = cursor.value()?.moved(offset);
        let nested = Members::nested(request, "requests.", Spelling::SnakeOrCamel)?;
        one(&format!("requests[{index}]."), &nested)?;
        index += 1;
        Ok(())
    })
}

/// Checks that a model named in the body is the model in the path.
fn same_model(
    members: &Members<'_>,
    model: &str,
) -> Result<Option<std::ops::Range<usize>>, Failure> {
    let Some(named) = members.string("model")? else {
        return Ok(None);
    };
    if named.strip_prefix("models/").unwrap_or(&named) != model {
        let message = "`model` in the body is not the model in the path.";
        return Err(Failure::invalid(message).param("model"));
    }
    Ok(members.get("model")?.map(|value| value.span()))
}

/// The part of a request that the list form can express. The rest is reported as dropped.
pub(super) fn contents(request: &Request, dropped: &mut Dropped) -> Result<Contents, Failure> {
    let members = Members::read(&request.body, Spelling::SnakeOrCamel)?;
    let mut contents = Contents {
        texts: Vec::new(),
        dimensions: None,
    };
    each(&members, request.form, |path, one| {
        for member in one.iter() {
            let known = |name: &&str| *name == member.name || snake(name) == member.name;
            if !CARRIED.iter().any(known) && !member.value.is_null() {
                dropped.name(&format!("{path}{}", member.name));
            }
        }
        let dimensions = one.integer("output_dimensionality")?;
        let dimensions = dimensions.map(Integer::saturating);
        if !contents.texts.is_empty() && contents.dimensions != dimensions {
            let message = "`outputDimensionality` must be the same in all `requests` here.";
            return Err(Failure::invalid(message).param("requests"));
        }
        contents.dimensions = dimensions;
        if let Some(content) = one.object("content")? {
            contents.texts.push(text(content)?);
        }
        Ok(())
    })?;
    Ok(contents)
}

/// The texts of all parts of a content item, concatenated.
fn text(content: Raw<'_>) -> Result<String, Failure> {
    let content = Members::nested(content, "content.", Spelling::SnakeOrCamel)?;
    let mut whole = String::new();
    if let Some(parts) = content.array("parts")? {
        Cursor::new(parts.text()).array(|cursor| {
            let part = cursor.value()?;
            if part.shape() != Shape::Object {
                return Err(no_text());
            }
            let part = Members::nested(part, "content.parts.", Spelling::SnakeOrCamel)?;
            let text = part.string("text")?.ok_or_else(no_text)?;
            whole.push_str(&text);
            Ok(())
        })?;
    }
    Ok(whole)
}

fn no_text() -> Failure {
    let message = "This model takes parts with `text` only.";
    Failure::invalid(message).param("content.parts")
}

fn snake(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Writes one text as a single request, and several texts as a batch.
pub(super) fn write(contents: &Contents, upstream_model: &str) -> (Form, Vec<u8>) {
    let model = format!("models/{upstream_model}");
    let one = |it: &mut Object<'_>, text: &str| {
        it.text("model", &model);
        it.object("content", |content| {
            content.array("parts", |parts| {
                parts.object(|part| {
                    part.text("text", text);
                });
            });
        });
        if let Some(dimensions) = contents.dimensions {
            it.number("outputDimensionality", dimensions);
        }
    };
    let mut out = Vec::new();
    if let [text] = contents.texts.as_slice() {
        object(&mut out, |it| one(it, text));
        return (Form::Content, out);
    }
    object(&mut out, |it| {
        it.array("requests", |list| {
            for text in &contents.texts {
                list.object(|it| one(it, text));
            }
        });
    });
    (Form::Contents, out)
}
