//! The query of a request: pairs as they stand there, and what may not stand there.

use std::borrow::Cow;

use http::Uri;
use protocol::{Failure, guard};

/// The pairs of a query, as they were written.
#[derive(Debug)]
pub(crate) struct Query<'u>(Vec<Pair<'u>>);

#[derive(Debug)]
struct Pair<'u> {
    /// The name, decoded.
    name: Cow<'u, str>,
    value: &'u str,
    /// Both, as they were written.
    raw: &'u str,
}

impl<'u> Query<'u> {
    /// Reads the query of a target.
    pub(crate) fn read(uri: &'u Uri) -> Result<Self, Failure> {
        let pairs = uri.query().unwrap_or_default().split('&');
        let pairs = pairs.filter(|raw| !raw.is_empty()).map(|raw| {
            let (name, value) = raw.split_once('=').unwrap_or((raw, ""));
            let name = decoded(name)?;
            Ok(Pair { name, value, raw })
        });
        Ok(Self(pairs.collect::<Result<_, Failure>>()?))
    }

    /// The value of this name, which may stand there once.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<Cow<'u, str>>, Failure> {
        let mut found = self
            .0
            .iter()
            .filter(|pair| pair.name.eq_ignore_ascii_case(name));
        let Some(pair) = found.next() else {
            return Ok(None);
        };
        // Two readers could take two of them, or another spelling.
        if pair.name != name || found.next().is_some() {
            let wrong = format!("`{name}` must stand in the query once, in lower case.");
            return Err(Failure::invalid(wrong).param(name));
        }
        decoded(pair.value).map(Some)
    }

    /// Every value of this name.
    pub(crate) fn all(&self, name: &str) -> Result<Vec<Cow<'u, str>>, Failure> {
        let found = self.0.iter().filter(|pair| pair.name == name);
        found.map(|pair| decoded(pair.value)).collect()
    }

    /// Refuses routing controls and paid tiers.
    pub(crate) fn refuse_choices(&self) -> Result<(), Failure> {
        for pair in &self.0 {
            guard::query_choice(&pair.name, &decoded(pair.value)?)?;
        }
        Ok(())
    }

    /// The pairs of all other names, as they were written.
    pub(crate) fn without(&self, name: &str) -> String {
        let others = self.0.iter().filter(|pair| pair.name != name);
        let others: Vec<&str> = others.map(|pair| pair.raw).collect();
        others.join("&")
    }
}

/// Undoes the encoding of forms: `+` is a blank.
fn decoded(text: &str) -> Result<Cow<'_, str>, Failure> {
    let spaced: Cow<'_, str> = if text.contains('+') {
        Cow::Owned(text.replace('+', " "))
    } else {
        Cow::Borrowed(text)
    };
    let decoded = match spaced {
        Cow::Borrowed(text) => super::surface::percent_decoded(text),
        Cow::Owned(text) => {
            super::surface::percent_decoded(&text).map(|it| Cow::Owned(it.into_owned()))
        }
    };
    decoded.ok_or_else(|| Failure::invalid("The query is not encoded as it should be."))
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
        assert_eq!(query.without("model"), "a=1%2B2&b&a=%20");
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
        ] {
            let uri = uri(query);
            let found = Query::read(&uri).unwrap().refuse_choices();
            assert_eq!(found.is_err(), refused, "{query}");
        }
    }
}
