//! The type of a picture by the end of its address.

/// The type, if the path of the address ends like the name of a picture.
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
    fn endings_tell_types() {
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
