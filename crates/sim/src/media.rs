//! Reads media in requests, given as a link, a data URI or base64, and detects their true type and size.

use crate::model::{Media, MediaKind, Source};

/// The number of bytes at the start of a file that are needed to detect its type and dimensions.
const HEAD_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaError {
    /// Neither a link nor a data URI.
    NoUrl,
    NotBase64,
}

/// Reads media given as a link or a data URI.
pub(crate) fn of_url(kind: MediaKind, url: &str) -> Result<Media, MediaError> {
    let Some(data) = url.strip_prefix("data:") else {
        let known = ["http://", "https://"];
        if !known.iter().any(|scheme| url.starts_with(scheme)) {
            return Err(MediaError::NoUrl);
        }
        return Ok(Media {
            kind,
            source: Source::Link(url.to_owned()),
            low_detail: false,
        });
    };
    let (head, data) = data.split_once(',').ok_or(MediaError::NoUrl)?;
    let media_type = head.strip_suffix(";base64").ok_or(MediaError::NotBase64)?;
    of_base64(kind, media_type, data)
}

/// Reads media given as base64, with the type that the caller declares.
pub(crate) fn of_base64(kind: MediaKind, declared: &str, data: &str) -> Result<Media, MediaError> {
    let content = decode(data).ok_or(MediaError::NotBase64)?;
    let format = sniff(&content.head).map_or_else(|| format_of(declared), str::to_owned);
    Ok(Media {
        kind,
        source: Source::Inline {
            format,
            bytes: content.bytes,
            pixels: pixels(&content.head),
        },
        low_detail: false,
    })
}

#[derive(Debug, PartialEq, Eq)]
struct DecodedMedia {
    bytes: u64,
    head: Vec<u8>,
}

/// Decodes the first bytes and counts the others. Accepts both base64 alphabets, with or without padding.
fn decode(data: &str) -> Option<DecodedMedia> {
    let data = data.trim_end_matches('=').as_bytes();
    if data.is_empty() || data.len() % 4 == 1 {
        return None;
    }
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let mut bits: u32 = 0;
    let mut pending = 0;
    for &sign in data {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        if head.len() < HEAD_BYTES {
            bits = bits << 6 | u32::from(value);
            pending += 6;
            if pending >= 8 {
                pending -= 8;
                head.push((bits >> pending).to_le_bytes()[0]);
            }
        }
    }
    Some(DecodedMedia {
        bytes: data.len() as u64 * 3 / 4,
        head,
    })
}

fn sniff(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', ..] => Some("PNG"),
        [0xff, 0xd8, 0xff, ..] => Some("JPEG"),
        [b'G', b'I', b'F', b'8', ..] => Some("GIF"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("WEBP"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'A',
            b'V',
            b'E',
            ..,
        ] => Some("WAV"),
        [b'I', b'D', b'3', ..] | [0xff, 0xfb, ..] => Some("MP3"),
        [b'%', b'P', b'D', b'F', ..] => Some("PDF"),
        _ => None,
    }
}

/// Converts `image/png` to `PNG`.
fn format_of(media_type: &str) -> String {
    let (_, subtype) = media_type.split_once('/').unwrap_or(("", media_type));
    let name: String = subtype
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .take(16)
        .collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name.to_ascii_uppercase()
    }
}

/// Reads the dimensions from the header of a PNG.
fn pixels(head: &[u8]) -> Option<(u32, u32)> {
    if sniff(head)? != "PNG" {
        return None;
    }
    let number = |from: usize| -> Option<u32> {
        let bytes = head.get(from..from + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    Some((number(16)?, number(20)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    #[test]
    fn a_png_is_recognised_with_its_size() {
        let media = of_url(MediaKind::Image, &format!("data:image/jpeg;base64,{PIXEL}")).unwrap();
        assert_eq!(
            media.source,
            Source::Inline {
                format: "PNG".to_owned(),
                bytes: 70,
                pixels: Some((1, 1)),
            }
        );
    }

    #[test]
    fn base64_is_taken_in_all_its_forms() {
        for (data, expected) in [
            ("AAAA", Some((3, vec![0, 0, 0]))),
            ("_-8=", Some((2, vec![0xff, 0xef]))),
            ("/+8", Some((2, vec![0xff, 0xef]))),
            ("A", None),
            ("", None),
            ("====", None),
            ("AA*A", None),
        ] {
            let found = decode(data).map(|decoded| (decoded.bytes, decoded.head));
            assert_eq!(found, expected, "{data}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for (url, error) in [
            ("ftp://x/y.png", MediaError::NoUrl),
            ("data:image/png", MediaError::NoUrl),
            ("data:image/png,abc", MediaError::NotBase64),
            ("data:image/png;base64,***", MediaError::NotBase64),
            ("", MediaError::NoUrl),
        ] {
            assert_eq!(of_url(MediaKind::Image, url), Err(error), "{url}");
        }
        assert!(of_url(MediaKind::Image, "https://example.com/a.png").is_ok());
    }
}
