//! Reads and writes `data:` URIs, in which several dialects send inline media.

/// Splits `data:<mime>;base64,<data>`. The type is empty if the URI has none.
pub(crate) fn split(uri: &str) -> Option<(&str, &str)> {
    let rest = uri
        .get(..5)
        .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))
        .and(uri.get(5..))?;
    let (head, data) = rest.split_once(',')?;
    let mime = head.strip_suffix(";base64")?;
    Some((mime.split(';').next().unwrap_or_default(), data))
}

pub(crate) fn join(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

/// The type of an image by its first bytes in base64. Unknown types count as PNG.
pub(crate) fn sniff(data: &str) -> &'static str {
    match data {
        data if data.starts_with("/9j/") => "image/jpeg",
        data if data.starts_with("R0lGOD") => "image/gif",
        data if data.starts_with("UklGR") => "image/webp",
        _ => "image/png",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_split_into_type_and_data() {
        for (uri, parts) in [
            ("data:image/png;base64,AAAA", Some(("image/png", "AAAA"))),
            (
                "DATA:image/png;charset=x;base64,AAAA",
                Some(("image/png", "AAAA")),
            ),
            ("data:;base64,AAAA", Some(("", "AAAA"))),
            ("data:image/png,AAAA", None),
            ("https://example.com/a.png", None),
            ("da\u{e9}a:", None),
        ] {
            assert_eq!(split(uri), parts, "{uri}");
        }
    }
}
