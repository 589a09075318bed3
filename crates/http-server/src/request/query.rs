//! Reads the query of a request, and makes the checks that every query must pass.

use std::borrow::Cow;

use http::Uri;
use protocol::{Failure, guard};

use crate::percent::percent_decoded;

/// The pairs of a query. Only their names are decoded.
#[derive(Debug)]
pub(crate) struct Query<'u>(Vec<Pair<'u>>);

#[derive(Debug)]
struct Pair<'u> {
    /// The name, decoded.
    name: Cow<'u, str>,
    value: &'u str,
    /// The whole pair, not decoded.
    raw: &'u str,
}

impl<'u> Query<'u> {
    pub(crate) fn read(uri: &'u Uri) -> Result<Self, Failure> {
        let pairs = uri.query().unwrap_or_default().split('&');
        let pairs = pairs.filter(|raw| !raw.is_empty()).map(|raw| {
            let (name, value) = raw.split_once('=').unwrap_or((raw, ""));
            let name = decoded(name)?;
            Ok(Pair { name, value, raw })
        });
        Ok(Self(pairs.collect::<Result<_, Failure>>()?))
    }

    /// The value of this name, which may occur only once.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<Cow<'u, str>>, Failure> {
        let mut found = self
            .0
            .iter()
            .filter(|pair| pair.name.eq_ignore_ascii_case(name));
        let Some(pair) = found.next() else {
            return Ok(None);
        };
        // Another reader of this query might use the other value or the other spelling.
        if pair.name != name || found.next().is_some() {
            let wrong = format!("`{name}` must appear in the query once, in lower case.");
            return Err(Failure::invalid(wrong).param(name));
        }
        decoded(pair.value).map(Some)
    }

    /// Every value of this name.
    pub(crate) fn all(&self, name: &str) -> Result<Vec<Cow<'u, str>>, Failure> {
        let found = self.0.iter().filter(|pair| pair.name == name);
        found.map(|pair| decoded(pair.value)).collect()
    }

    /// Refuses parameters that choose routes, paid tiers or another model.
    pub(crate) fn refuse_choices(&self) -> Result<(), Failure> {
        for pair in &self.0 {
            guard::form_field::check(&pair.name, &decoded(pair.value)?)?;
        }
        Ok(())
    }

    /// The query for the upstream: every pair unchanged, except those named `without` and those that contain a
    /// credential. The upstream must not see the client's key.
    pub(crate) fn for_upstream(&self, without: &str, key: Option<&str>) -> Result<String, Failure> {
        let mut kept: Vec<&str> = Vec::with_capacity(self.0.len());
        for pair in &self.0 {
            let value = decoded(pair.value)?;
            let holds_key = key.is_some_and(|key| value.contains(key) || pair.name.contains(key));
            let is_kept = pair.name != without && !names_credential(&pair.name) && !holds_key;
            if is_kept {
                kept.push(pair.raw);
            }
        }
        Ok(kept.join("&"))
    }
}

/// Names under which clients put a key into a query, in lower case and without separators.
const CREDENTIALS: [&str; 11] = [
    "accesstoken",
    "apikey",
    "apitoken",
    "authorization",
    "authtoken",
    "key",
    "secret",
    "token",
    "xalphaapikey",
    "xapikey",
    "xgoogapikey",
];

fn names_credential(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let folded: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    CREDENTIALS.contains(&folded.as_str())
}

/// Decodes a name or value. `+` stands for a space.
fn decoded(text: &str) -> Result<Cow<'_, str>, Failure> {
    let spaced: Cow<'_, str> = if text.contains('+') {
        Cow::Owned(text.replace('+', " "))
    } else {
        Cow::Borrowed(text)
    };
    let decoded = match spaced {
        Cow::Borrowed(text) => percent_decoded(text),
        Cow::Owned(text) => percent_decoded(&text).map(|it| Cow::Owned(it.into_owned())),
    };
    decoded.ok_or_else(|| Failure::invalid("The query is not correctly percent-encoded."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(query: &str) -> Uri {
        format!("/v1/x?{query}").parse().unwrap()
    }

    #[test]
    fn a_name_stands_once_and_the_others_stay_as_they_are() {
        let uri = uri("a=1%2B2&mod%65l=maker%2Fm+x&b&a=%20");
        let query = Query::read(&uri).unwrap();
        assert_eq!(query.get("model").unwrap().as_deref(), Some("maker/m x"));
        assert_eq!(query.get("none").unwrap(), None);
        assert!(query.get("a").is_err());
        let sent = query.for_upstream("model", Some("sk-1")).unwrap();
        assert_eq!(sent, "a=1%2B2&b&a=%20");
    }

    #[test]
    fn no_credential_is_sent_on() {
        for pair in [
            "key=sk-1",
            "key=",
            "k%65y=other",
            "KEY=sk-1",
            "api_key=x",
            "Api-Key=x",
            "apikey=x",
            "access_token=x",
            "token=x",
            "x-goog-api-key=x",
            "Authorization=Bearer+x",
            "note=sk-1",
            "note=Bearer%20sk%2D1",
            "sk-1=note",
            "sk%2D1",
        ] {
            let uri = uri(&format!("model=m&language=en&{pair}&voice=a%20b"));
            let query = Query::read(&uri).unwrap();
            let sent = query.for_upstream("model", Some("sk-1")).unwrap();
            assert_eq!(sent, "language=en&voice=a%20b", "{pair}");
        }
        let uri = uri("keyterm=a&keyterms=b&turnkey=c");
        let sent = Query::read(&uri)
            .unwrap()
            .for_upstream("model", Some("sk-1"));
        assert_eq!(sent.unwrap(), "keyterm=a&keyterms=b&turnkey=c");
    }

    #[test]
    fn what_is_read_in_two_ways_is_refused() {
        for query in ["model=a&model=b", "Model=a", "model=a&MODEL=a"] {
            let uri = uri(query);
            assert!(Query::read(&uri).unwrap().get("model").is_err(), "{query}");
        }
        for query in ["model=%f", "model=%ff", "%zz=1"] {
            let uri = uri(query);
            let read = Query::read(&uri).and_then(|it| it.get("model").map(|_| ()));
            assert!(read.is_err(), "{query}");
        }
    }

    #[test]
    fn choices_are_refused() {
        for (query, refused) in [
            ("language=en", false),
            ("service_tier=auto", false),
            ("service_tier=flex", true),
            ("provider=x", true),
            ("routes=", true),
            ("Provider=x", true),
            ("model=a&model_id=b", true),
            ("model=a&model%5B%5D=b", true),
            ("model=a&%20model=b", true),
            ("model=a&model%00=b", true),
            ("reasoning.effort=high&keyterm=a&keyterm=b", false),
        ] {
            let uri = uri(query);
            let found = Query::read(&uri).unwrap().refuse_choices();
            assert_eq!(found.is_err(), refused, "{query}");
        }
    }
}
