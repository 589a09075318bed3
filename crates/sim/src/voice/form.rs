//! Parses a multipart form and keeps the order of its parts, because this vendor checks the order.

use crate::protocol::Incoming;
use http::header::CONTENT_TYPE;

#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) data: Vec<u8>,
}

/// Parses a form; `None` if the body is not one.
pub(super) fn read(call: &Incoming<'_>) -> Option<Vec<Part>> {
    let content_type = call.parts.headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let boundary = content_type
        .strip_prefix("multipart/form-data; boundary=")?
        .trim_matches('"');
    let (opening, delimiter) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let mut rest = call.body.strip_prefix(opening.as_bytes())?;
    let mut parts = Vec::new();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let end = find(part, delimiter.as_bytes())?;
        let (whole, after) = part.split_at_checked(end)?;
        rest = after.get(delimiter.len()..)?;
        let head = find(whole, b"\r\n\r\n")?;
        let text = String::from_utf8_lossy(whole.get(..head)?).into_owned();
        let name = text.split("name=\"").nth(1)?.split('"').next()?;
        parts.push(Part {
            name: name.to_owned(),
            data: whole.get(head + 4..)?.to_vec(),
        });
    }
    rest.starts_with(b"--").then_some(parts)
}

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
