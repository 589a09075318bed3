//! Passes on edits that arrive as forms, or converts them to JSON for upstreams that accept only
//! JSON.

use std::collections::HashSet;

use bytes::Bytes;

use super::family::Family;
use super::sequence::{LIMIT_FIELDS, OPTIONS};
use crate::canon::{Dropped, base64, data_uri};
use crate::guard::is_web_url;
use crate::json::{Cursor, Integer, Shape, write_string};
use crate::multipart::{Form, Part, list_name};
use crate::request_head;

/// Fields that are integers in JSON and text in a form.
const INTEGERS: [&str; 4] = ["n", "output_compression", "partial_images", "seed"];
const BOOLEANS: [&str; 3] = ["stream", "watermark", "layer_decomposition"];

/// A longer field counts as a file that lacks a file name, unless it is a data URI.
const ADDRESS_BYTES_MAX: usize = 8 << 10;

/// The source images: `image`, `image[]`, `image[0]`, and the same with `images`.
pub(super) fn sources(form: &Form) -> impl Iterator<Item = &Part> {
    form.parts.iter().filter(|part| is_source(&part.name))
}

/// Whether a field holds a picture: a source or the mask.
pub(super) fn is_picture(name: &str) -> bool {
    is_source(name) || list_name(name) == "mask"
}

pub(super) fn is_source(name: &str) -> bool {
    matches!(list_name(name), "image" | "images")
}

/// Whether a source image is a URL or data URI in a text field. Some upstreams accept only files
/// there.
pub(super) fn has_source_urls(form: &Form) -> bool {
    sources(form).any(|part| address(part).is_some())
}

/// All web URLs in text fields that an upstream may fetch.
pub(super) fn fetchable_urls(form: &Form, accepted: usize) -> HashSet<String> {
    let texts = form.parts.iter().filter(|part| part.file_name.is_none());
    let fields = texts.map(|part| (&*part.name, part.text()));
    request_head::fetchable_fields(fields, accepted)
}

/// The URL or data URI in a field where other clients send a file.
fn address(part: &Part) -> Option<String> {
    if part.file_name.is_some()
        || part.len() > ADDRESS_BYTES_MAX && !part.head().starts_with(b"data:")
    {
        return None;
    }
    let text = part.text();
    let text = text.trim();
    let is_data = data_uri::split(text).is_some_and(|(mime, _)| mime.starts_with("image/"));
    (is_data || is_web_url(text)).then(|| text.to_owned())
}

/// The form for an upstream that accepts forms. Unknown parts are kept.
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
        // Upstreams do not accept all notations of booleans that clients use.
        if BOOLEANS.contains(&part.name.as_str())
            && let Ok(truth) = part.boolean()
        {
            part.data = Bytes::from_static(if truth { b"true" } else { b"false" }).into();
        } else if part.name == "model" {
            part.data = Bytes::copy_from_slice(upstream_model.as_bytes()).into();
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

/// The form as JSON, with the images as data URIs.
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
            // The content family uses tiers as sizes.
            (Family::Content, "resolution") if !has_size => {
                ("size", value.to_ascii_uppercase().into())
            }
            _ => (name, value),
        };
        let is_one = part.integer() == Ok(Integer::Value(1));
        let is_unsupported = match family {
            Family::VideoA => name == "size",
            Family::Gpt => name == "response_format",
            Family::Content => name == "resolution" || (name == "n" && !is_one),
            Family::Unknown => false,
        };
        // The mask is written after the sources.
        if family == Family::Gpt && name == "mask" {
            continue;
        }
        // Files other than the sources cannot be sent.
        if part.file_name.is_some() || is_unsupported {
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
    write_pictures(form, family, text, &mut out);
    out
}

/// Writes the source images and the members after them.
fn write_pictures(form: &Form, family: Family, mut text: Vec<u8>, out: &mut Vec<Bytes>) {
    let member: &[u8] = match (family, sources(form).count()) {
        (Family::Content | Family::VideoA, 1) => b",\"image\":",
        (Family::Content, _) => b",\"image\":[",
        _ => b",\"images\":[",
    };
    text.extend_from_slice(member);
    for (index, part) in sources(form).enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_picture(part, family, &mut text, out);
    }
    if member.ends_with(b"[") {
        text.push(b']');
    }
    let mask = form.parts.iter().find(|part| part.name == "mask");
    if let Some(mask) = mask.filter(|_| family == Family::Gpt) {
        text.extend_from_slice(b",\"mask\":");
        write_picture(mask, family, &mut text, out);
    }
    text.push(b'}');
    out.push(text.into());
}

/// Writes one image: its URL, or a data URI of its bytes.
fn write_picture(part: &Part, family: Family, text: &mut Vec<u8>, out: &mut Vec<Bytes>) {
    let (before, behind): (&[u8], &[u8]) = match family {
        Family::Content => (b"", b""),
        Family::Gpt => (b"{\"image_url\":", b"}"),
        Family::VideoA | Family::Unknown => (b"{\"type\":\"image_url\",\"url\":", b"}"),
    };
    text.extend_from_slice(before);
    if let Some(address) = address(part) {
        write_string(text, &address);
    } else {
        let media_type = media_type(part);
        text.extend_from_slice(format!("\"data:{media_type};base64,").as_bytes());
        out.push(std::mem::take(text).into());
        let mut encoder = base64::Encoder::default();
        for piece in part.data.iter() {
            encoder.push(piece);
        }
        out.push(encoder.finish().into());
        text.push(b'"');
    }
    text.extend_from_slice(behind);
}

/// The JSON value of a field that is not a string in JSON.
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
        Shape::Array => name == "tools",
        _ => false,
    };
    is_json.then(|| text.to_owned())
}

/// The type of a file by its first bytes, otherwise its declared type.
fn media_type(part: &Part) -> String {
    let sniffed = match part.head() {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', ..] => Some("image/webp"),
        _ => None,
    };
    let declared = part.content_type.as_deref();
    let declared = declared.filter(|it| !it.eq_ignore_ascii_case("application/octet-stream"));
    sniffed.or(declared).unwrap_or("image/png").to_owned()
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
            data: Bytes::from_static(data).into(),
            drained_bytes: 0,
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
        let parts: Vec<_> = out
            .parts
            .iter()
            .map(|part| (part.name.as_str(), part.content_type.as_deref()))
            .collect();
        assert_eq!(
            parts,
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
    fn a_picture_that_is_named_goes_on_by_its_name() {
        let mut form = form();
        let address = "https://pictures.example/a.png?x=\"1\"";
        form.parts.push(Part::field("image", address));
        form.parts
            .push(Part::field("image[]", " data:image/png;base64,iVBORw0K"));
        assert!(has_source_urls(&form));
        for family in [Family::VideoA, Family::Content, Family::Gpt] {
            let mut dropped = Dropped::new(Dialect::Chat);
            let json = to_json(&form, family, "up-1", &mut dropped).concat();
            let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
            let (list, path) = match family {
                Family::Content => (&json["image"], ""),
                Family::Gpt => (&json["images"], "/image_url"),
                _ => (&json["images"], "/url"),
            };
            let sources: Vec<_> = list
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it.pointer(path))
                .collect();
            let sources: Vec<_> = sources
                .into_iter()
                .flatten()
                .filter_map(|it| it.as_str())
                .collect();
            let expected = [
                "data:image/png;base64,iVBORzE=",
                "data:image/jpeg;base64,/9j/Mg==",
                address,
                "data:image/png;base64,iVBORw0K",
            ];
            assert_eq!(sources, expected, "{family:?}");
            let mask = json["mask"]["image_url"].as_str();
            let is_gpt = family == Family::Gpt;
            assert_eq!(mask.is_some(), is_gpt);
            let dropped = dropped.header().unwrap();
            assert_eq!(dropped.contains("response_format"), is_gpt, "{dropped}");
            assert_eq!(dropped.contains("mask"), !is_gpt, "{dropped}");
        }
    }

    #[test]
    fn truths_are_written_as_every_upstream_reads_them() {
        for (said, sent) in [
            ("1", "true"),
            ("True", "true"),
            (" TRUE ", "true"),
            ("0", "false"),
        ] {
            let form = Form {
                parts: vec![Part::field("model", "m/x"), Part::field("stream", said)],
            };
            let mut dropped = Dropped::new(Dialect::Chat);
            let out = rewrite(&form, Family::Gpt, "up-1", &mut dropped);
            assert_eq!(out.parts[1].text(), sent, "{said}");
        }
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
