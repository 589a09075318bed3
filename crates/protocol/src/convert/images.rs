//! Decides which image URLs an upstream fetches itself, and which images must be sent inline.

use crate::canon::mime;
use crate::dialect::Dialect;
use crate::profile::Profile;

/// Whether an upstream of this dialect fetches this image URL. Otherwise the image must be sent
/// inline. A profile can say that the model's upstream fetches no URLs.
pub fn takes_image_url(dialect: Dialect, profile: &Profile, url: &str) -> bool {
    if profile.image_urls == Some(false) {
        return false;
    }
    match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Interactions => true,
        Dialect::Messages => is_secure(url),
        // The dialect requires a media type next to a file URI. It comes from the extension in the URL.
        Dialect::Generate => is_secure(url) && mime::of_url(url).is_some(),
    }
}

fn is_secure(url: &str) -> bool {
    let scheme = url.get(..8);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_take_addresses_of_their_own_kind() {
        use Dialect::{Chat, Generate, Interactions, Messages, Responses};
        for (url, takers) in [
            (
                "https://a.example/x.png",
                &[Chat, Responses, Messages, Generate, Interactions][..],
            ),
            (
                "HTTPS://a.example/x",
                &[Chat, Responses, Messages, Interactions],
            ),
            ("http://a.example/x.png", &[Chat, Responses, Interactions]),
        ] {
            for dialect in Dialect::ALL {
                let takes = takes_image_url(dialect, &Profile::default(), url);
                assert_eq!(takes, takers.contains(&dialect), "{dialect} {url}");
                let fetches_none = Profile {
                    image_urls: Some(false),
                    ..Profile::default()
                };
                assert!(!takes_image_url(dialect, &fetches_none, url));
            }
        }
    }
}
