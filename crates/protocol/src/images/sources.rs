//! Reads source images in JSON: strings, or objects that refer to an image in one of several ways.

use std::ops::Range;

use crate::failure::Failure;
use crate::json::{Cursor, Members, Raw, Shape, Spelling};

/// The maximum number of source images. Vendors take a few dozen.
const SOURCES_MAX: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) kind: Kind,
    /// The position of the string in the whole text, including the quotes.
    pub(super) span: Range<usize>,
    pub(super) shape: Notation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A URL or data URI.
    Url,
    /// The id of a file at the upstream.
    File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// `"…"`
    Bare,
    /// `{"url": "…"}`
    Url,
    /// `{"image_url": "…"}` or `{"file_id": "…"}`
    Named,
    /// `{"image_url": {"url": "…"}}`
    Nested,
}

/// All source images of a request, first those of `image`, then those of `images`.
pub(super) fn read(members: &Members<'_>) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    each(members, |source| sources.push(source))?;
    Ok(sources)
}

/// The number of source images. Each of them must be valid.
pub(super) fn count(members: &Members<'_>) -> Result<u64, Failure> {
    let mut count = 0;
    each(members, |_| count += 1)?;
    Ok(count)
}

/// Calls a function with each source image, in the order of [`read`].
pub(super) fn each(
    members: &Members<'_>,
    mut use_source: impl FnMut(Source),
) -> Result<(), Failure> {
    let mut count = 0;
    let mut take = |value: Raw<'_>, name| {
        count += 1;
        if count > SOURCES_MAX {
            let message = format!("The request has more than {SOURCES_MAX} source images.");
            return Err(Failure::invalid(message).param(name));
        }
        use_source(read_source(value, name)?);
        Ok(())
    };
    for name in ["image", "images"] {
        let Some(value) = members.get(name)? else {
            continue;
        };
        if value.shape() != Shape::Array {
            take(value, name)?;
            continue;
        }
        let offset = value.span().start;
        Cursor::new(value.text()).array(|cursor| take(cursor.value()?.moved(offset), name))?;
    }
    Ok(())
}

/// One picture: `mask`, a single `image`, or an item of a list.
pub(super) fn read_source(value: Raw<'_>, name: &'static str) -> Result<Source, Failure> {
    let of = |kind, raw: Raw<'_>, shape| Source {
        kind,
        span: raw.span(),
        shape,
    };
    let is_text = |raw: &Raw<'_>| raw.shape() == Shape::String && !raw.is_empty();
    if is_text(&value) {
        return Ok(of(Kind::Url, value, Notation::Bare));
    }
    if value.shape() == Shape::Object {
        let members = Members::nested(value, "image.", Spelling::One)?;
        if let Some(url) = members.get("url")?.filter(is_text) {
            return Ok(of(Kind::Url, url, Notation::Url));
        }
        if let Some(url) = members.get("image_url")? {
            if is_text(&url) {
                return Ok(of(Kind::Url, url, Notation::Named));
            }
            if url.shape() == Shape::Object {
                let inner = Members::nested(url, "image.image_url.", Spelling::One)?;
                if let Some(url) = inner.get("url")?.filter(is_text) {
                    return Ok(of(Kind::Url, url, Notation::Nested));
                }
            }
        }
        if let Some(file) = members.get("file_id")?.filter(is_text) {
            return Ok(of(Kind::File, file, Notation::Named));
        }
    }
    let message = format!("`{name}` must name a picture by `url`, `image_url` or `file_id`.");
    Err(Failure::invalid(message).param(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_source_images_are_read_and_no_more() {
        for (count_of_images, is_accepted) in [(SOURCES_MAX - 1, true), (SOURCES_MAX, false)] {
            let images = vec!["\"a\""; count_of_images].join(",");
            let body = format!(r#"{{"image":"a","images":[{images}]}}"#);
            let members = Members::read(body.as_bytes(), Spelling::One).unwrap();
            let counted = count(&members);
            assert_eq!(counted.is_ok(), is_accepted);
            assert_eq!(read(&members).is_ok(), is_accepted);
            if let Ok(counted) = counted {
                assert_eq!(counted, SOURCES_MAX as u64);
            }
        }
    }
}
