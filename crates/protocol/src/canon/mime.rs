//! Detects the type of an image by its first bytes or by the extension in its URL.

/// This many bytes are enough to detect every supported type.
pub const DETECTION_BYTES: usize = 12;

/// The type of a file that starts with these bytes, if it is an image.
pub fn of_bytes(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
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
        ] => "image/webp",
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => match brand.get(..4)? {
            b"heic" | b"heix" | b"hevc" | b"hevx" => "image/heic",
            b"mif1" | b"msf1" => "image/heif",
            _ => return None,
        },
        _ => return None,
    })
}

/// The image type for the extension in the URL's path, if the extension is known.
pub fn of_url(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "heic" => "image/heic",
        "heif" => "image/heif",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_detected_by_first_bytes() {
        for (head, mime) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\r"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\x01\x02\x03\x04WEBP", Some("image/webp")),
            (b"\0\0\0\x18ftypheic", Some("image/heic")),
            (b"\0\0\0\x18ftypmif1", Some("image/heif")),
            (b"\0\0\0\x18ftypmp42", None),
            (b"RIFF\x01\x02\x03\x04WAVE", None),
            (b"<!DOCTYPE html>", None),
            (b"\x89PNG", None),
            (b"", None),
        ] {
            assert_eq!(of_bytes(head), mime, "{head:?}");
        }
    }

    #[test]
    fn types_are_detected_by_extensions() {
        for (url, mime) in [
            ("https://a.example/x.PNG?sig=a.jpg", Some("image/png")),
            ("https://a.example/x.jpeg#y", Some("image/jpeg")),
            ("https://a.example/x", None),
            ("https://png", None),
            ("https://a.example/x.pdf", None),
        ] {
            assert_eq!(of_url(url), mime, "{url}");
        }
    }
}
