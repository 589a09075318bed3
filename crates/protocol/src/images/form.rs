//! Edits that came as forms: passed on as forms, or turned into JSON for upstreams that take no
//! other.

use bytes::Bytes;

use super::family::Family;
use super::sequence::{LIMIT_FIELDS, OPTIONS};
use crate::canon::{Dropped, base64};
use crate::json::{Cursor, Integer, Shape, write_string};
use crate::multipart::{Form, Part};

/// Fields that are whole numbers in JSON, where a form has only text.
const INTEGERS: [&str; 4] = ["n", "output_compression", "partial_images", "seed"];
const BOOLEANS: [&str; 3] = ["stream", "watermark", "layer_decomposition"];

/// The source pictures: `image`, `image[]`, `image[0]`, and the same as `images`.
pub(super) fn sources(form: &Form) -> impl Iterator<Item = &Part> {
    form.parts.iter().filter(|part| is_source(&part.name))
}

fn is_source(name: &str) -> bool {
    let (list, index) = name
        .strip_suffix(']')
        .and_then(|name| name.split_once('['))
        .unwrap_or((name, ""));
    matches!(list, "image" | "images") && index.bytes().all(|byte| byte.is_ascii_digit())
}

/// The form for an upstream that takes forms. Parts that nobody here knows stay.
pub(super) fn rewrite(
    form: &Form,
    family: Family,
    upstream_model: &str,
    dropped: &mut Dropped,
) -> Form {
    let several = sources(form).count() > 1;
    let mut parts = Vec::with_capacity(form.parts.len());
    for part in &form.parts {
        if family == Family::Gpt && part.name == "response_format" {
            dropped.name(&part.name);
            continue;
        }
        let mut part = part.clone();
        if part.name == "model" {
            part.data = vec![Bytes::copy_from_slice(upstream_model.as_bytes())];
        } else if is_source(&part.name) {
            let name = if several { "image[]" } else { "image" };
            name.clone_into(&mut part.name);
        }
        if part.file_name.is_some() {
            part.content_type = Some(media_type(&part));
        }
        parts.push(part);
    }
    Form { parts }
}

/// The same as JSON, with the pictures as data URIs.
pub(super) fn to_json(
    form: &Form,
    family: Family,
    upstream_model: &str,
    dropped: &mut Dropped,
) -> Vec<Bytes> {
    let has_size = form.parts.iter().any(|part| part.name == "size");
    let mut out = Vec::new();
    let mut text = b"{\"model\":".to_vec();
    write_string(&mut text, upstream_model);
    for part in &form.parts {
        let name = part.name.as_str();
        if name == "model" || is_source(name) {
            continue;
        }
        let value = part.text();
        let (name, value) = match (family, name) {
            // Tiers are sizes there.
            (Family::Content, "resolution") if !has_size => {
                ("size", value.to_ascii_uppercase().into())
            }
            _ => (name, value),
        };
        let is_one = part.integer() == Ok(Integer::Value(1));
        let unsaid = match family {
            Family::VideoA => name == "size",
            Family::Content => name == "resolution" || (name == "n" && !is_one),
            Family::Gpt | Family::Plain => false,
        };
        // Files beside the sources, such as a mask, have no place there.
        if part.file_name.is_some() || unsaid {
            dropped.name(name);
            continue;
        }
        if family == Family::Content && name == "n" {
            continue;
        }
        let is_limit = LIMIT_FIELDS.contains(&name);
        text.push(b',');
        write_string(&mut text, if is_limit { OPTIONS } else { name });
        text.push(b':');
        if is_limit {
            text.extend_from_slice(b"{\"max_images\":");
        }
        match typed(name, part) {
            Some(json) => text.extend_from_slice(json.as_bytes()),
            None => write_string(&mut text, &value),
        }
        if is_limit {
            text.push(b'}');
        }
    }
    let count = sources(form).count();
    let member: &[u8] = match (family, count) {
        (Family::Content | Family::VideoA, 1) => b",\"image\":",
        (Family::Content, _) => b",\"image\":[",
        _ => b",\"images\":[",
    };
    text.extend_from_slice(member);
    for (index, part) in sources(form).enumerate() {
        if index > 0 {
            text.push(b',');
        }
        let (before, behind): (&[u8], &[u8]) = match family {
            Family::Content => (b"\"", b"\""),
            _ => (b"{\"type\":\"image_url\",\"url\":\"", b"\"}"),
        };
        text.extend_from_slice(before);
        let media_type = media_type(part);
        text.extend_from_slice(format!("data:{media_type};base64,").as_bytes());
        out.push(std::mem::take(&mut text).into());
        let mut encoder = base64::Encoder::default();
        for piece in &part.data {
            encoder.push(piece);
        }
        out.push(encoder.finish().into());
        text.extend_from_slice(behind);
    }
    if member.ends_with(b"[") {
        text.push(b']');
    }
    text.push(b'}');
    out.push(text.into());
    out
}

/// The value of a field that is no text in JSON, in the form it has there.
fn typed(name: &str, part: &Part) -> Option<String> {
    let text = part.text();
    let text = text.trim();
    if BOOLEANS.contains(&name) {
        return part.boolean().ok().map(|truth| truth.to_string());
    }
    let is_integer = INTEGERS.contains(&name) || LIMIT_FIELDS.contains(&name);
    if is_integer && let Ok(Integer::Value(count)) = part.integer() {
        return Some(count.to_string());
    }
    let mut cursor = Cursor::new(text);
    let value = cursor.value().ok()?;
    cursor.end().ok()?;
    let is_json = match value.shape() {
        Shape::Number => is_integer || name == "guidance_scale",
        Shape::Object => name == OPTIONS,
        _ => false,
    };
    is_json.then(|| text.to_owned())
}

/// What a file is, by its first bytes; else what it says it is.
fn media_type(part: &Part) -> String {
    let sniffed = match part.head() {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', ..] => Some("image/webp"),
        _ => None,
    };
    let told = part.content_type.as_deref();
    let told = told.filter(|it| !it.eq_ignore_ascii_case("application/octet-stream"));
    sniffed.or(told).unwrap_or("image/png").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    fn form() -> Form {
        let file = |name: &str, data: &'static [u8]| Part {
            name: name.to_owned(),
            file_name: Some("a".to_owned()),
            content_type: Some("application/octet-stream".to_owned()),
            data: vec![Bytes::from_static(data)],
            elsewhere: 0,
        };
        Form {
            parts: vec![
                Part::field("model", "maker/m"),
                Part::field("prompt", "a \"cat\""),
                Part::field("n", "2"),
                Part::field("response_format", "b64_json"),
                file("image[0]", b"\x89PNG1"),
                Part::field("x_unknown", "kept"),
                file("image[1]", b"\xff\xd8\xff2"),
                file("mask", b"\x89PNG3"),
            ],
        }
    }

    #[test]
    fn unknown_parts_stay_and_names_become_those_of_the_vendor() {
        let mut dropped = Dropped::new(Dialect::Chat);
        let out = rewrite(&form(), Family::Gpt, "up-1", &mut dropped);
        let told: Vec<_> = out
            .parts
            .iter()
            .map(|part| (part.name.as_str(), part.content_type.as_deref()))
            .collect();
        assert_eq!(
            told,
            [
                ("model", None),
                ("prompt", None),
                ("n", None),
                ("image[]", Some("image/png")),
                ("x_unknown", None),
                ("image[]", Some("image/jpeg")),
                ("mask", Some("image/png")),
            ]
        );
        assert_eq!(out.parts[0].text(), "up-1");
        assert_eq!(dropped.header().as_deref(), Some("response_format"));
    }

    #[test]
    fn files_become_data_uris_where_json_alone_is_taken() {
        let mut dropped = Dropped::new(Dialect::Chat);
        let json = to_json(&form(), Family::VideoA, "up-1", &mut dropped).concat();
        insta::assert_snapshot!(String::from_utf8(json).unwrap(), @r#"{"model":"up-1","prompt":"a \"cat\"","n":2,"response_format":"b64_json","x_unknown":"kept","images":[{"type":"image_url","url":"data:image/png;base64,iVBORzE="},{"type":"image_url","url":"data:image/jpeg;base64,/9j/Mg=="}]}"#);
        assert_eq!(dropped.header().as_deref(), Some("mask"));
        let mut dropped = Dropped::new(Dialect::Chat);
        let json = to_json(&form(), Family::Content, "up-1", &mut dropped).concat();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["image"][1], "data:image/jpeg;base64,/9j/Mg==");
        assert_eq!(dropped.header().as_deref(), Some("n,mask"));
    }
}
