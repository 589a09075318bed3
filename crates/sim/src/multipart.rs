//! Parses multipart forms. The simulator has its own parser, so that it checks the gateway's forms independently.

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// Whether the part has a file name.
    pub(crate) is_file: bool,
    pub(crate) data: Vec<u8>,
}

/// Parses a form into its parts, in order; `None` if the body is not a form.
pub(crate) fn parse(content_type: &str, body: &[u8]) -> Option<Vec<Part>> {
    let parameters = content_type.strip_prefix("multipart/form-data")?;
    let boundary = parameters.split("boundary=").nth(1)?;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    let (opening, delimiter) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let mut rest = body.strip_prefix(opening.as_bytes())?;
    let mut parts = Vec::new();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let end = find(part, delimiter.as_bytes())?;
        let (whole, after) = part.split_at_checked(end)?;
        rest = after.get(delimiter.len()..)?;
        let head_end = find(whole, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(whole.get(..head_end)?);
        parts.push(Part {
            name: parameter(&head, "name")?.to_owned(),
            is_file: parameter(&head, "filename").is_some(),
            data: whole.get(head_end + 4..)?.to_vec(),
        });
    }
    rest.starts_with(b"--").then_some(parts)
}

/// Finds `wanted` in a text. Searches for its first byte and then compares the rest, because line ends are rare in
/// binary files.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted.first()?;
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let at = from + rest.iter().position(|byte| byte == first)?;
        if text.get(at..)?.starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// A parameter of a part's header, such as `name` in `form-data; name="file"`.
fn parameter<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut pieces = head.split([';', '\r', '\n']);
    let value = pieces.find_map(|piece| piece.trim().strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n2\r\n--b\r\n\
        content-disposition: form-data; filename=\"a\"; name=\"file\"\r\ncontent-type: audio/wav\r\n\r\n\
        \r\n--\r\n\r\n--b--\r\n";

    #[test]
    fn the_parts_of_a_form_keep_their_order_and_bytes() {
        let part = |name: &str, is_file, data: &[u8]| Part {
            name: name.to_owned(),
            is_file,
            data: data.to_vec(),
        };
        let expected = [part("n", false, b"2"), part("file", true, b"\r\n--\r\n")];
        for content_type in [
            "multipart/form-data; boundary=b",
            "multipart/form-data; boundary=\"b\"; charset=utf-8",
        ] {
            let parts = parse(content_type, FORM.as_bytes()).unwrap();
            assert_eq!(parts, expected, "{content_type}");
        }
    }

    #[test]
    fn a_body_that_is_not_a_form_is_refused() {
        let good = "multipart/form-data; boundary=b";
        for (content_type, body) in [
            ("application/json; boundary=b", FORM),
            ("multipart/form-data", FORM),
            ("multipart/form-data; boundary=c", FORM),
            (good, ""),
            (good, "--b\r\n\r\n\r\n--b--"),
            (good, "--b\r\nname=\"n\"\r\n\r\n2\r\n--b"),
            (good, "--b\r\nname=\"n\"\r\n\r\n2"),
        ] {
            let parts = parse(content_type, body.as_bytes());
            assert_eq!(parts, None, "{content_type} {body:?}");
        }
    }
}
