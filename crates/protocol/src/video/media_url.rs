//! Checks references to media in a request: a URL, a data URI, or a file of the upstream.

use crate::failure::Failure;
use crate::guard::is_web_url;
use crate::json::{Members, Raw, Spelling};

/// Checks an object that refers to one medium: by `url` (a public URL, or a data URI of `media_type`), or by
/// one of `others`, such as `file_id`. `path` is the name of the member in messages for the client.
pub(super) fn check(
    raw: Raw<'_>,
    path: &'static str,
    media_type: &str,
    others: &[&str],
) -> Result<(), Failure> {
    let members = Members::nested(raw, path, Spelling::One)?;
    let mut count = 0;
    if let Some(url) = members.string("url")? {
        count += 1;
        let inline = format!("data:{media_type}");
        let start = url.get(..inline.len());
        let is_inline = start.is_some_and(|start| start.eq_ignore_ascii_case(&inline));
        if !is_web_url(&url) && !is_inline {
            return Err(wrong(
                path,
                &format!("`{path}url` must be an http(s) URL or a data URI of {media_type}."),
            ));
        }
    }
    for other in others {
        if members.string(other)?.is_some_and(|name| !name.is_empty()) {
            count += 1;
        }
    }
    if count == 1 {
        return Ok(());
    }
    let names: Vec<String> = ["url"]
        .iter()
        .chain(others)
        .map(|name| format!("`{name}`"))
        .collect();
    let what = path.trim_end_matches('.');
    let names = names.join(" or ");
    Err(wrong(
        path,
        &format!("`{what}` needs exactly one of {names}."),
    ))
}

fn wrong(path: &'static str, message: &str) -> Failure {
    Failure::invalid(message.to_owned()).param(path.trim_end_matches('.'))
}
