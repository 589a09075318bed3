//! The settings that identify an account at a cloud, such as its project.

use std::collections::BTreeMap;

use crate::error::ChannelError;
use crate::secret::Secret;

/// The settings of an account, by name. The preset defines which settings there are; some can be secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account(BTreeMap<String, Secret>);

impl Account {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(Secret::expose)
    }

    /// Whether the setting has a value.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(Secret::expose)
    }

    /// The names of the settings.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl FromIterator<(String, Secret)> for Account {
    fn from_iter<I: IntoIterator<Item = (String, Secret)>>(settings: I) -> Self {
        Self(settings.into_iter().collect())
    }
}

/// The placeholder for the model of a call. It is filled in when the call is sent.
pub(crate) const MODEL: &str = "model";

/// The names between braces in a template, in order.
pub(crate) fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    let parts = template.split('{').skip(1);
    parts.filter_map(|part| Some(part.split_once('}')?.0))
}

/// Replaces each `{name}` with the value of that setting, or with the preset's default. `{model}` stays.
pub(crate) fn fill(
    template: &str,
    account: &Account,
    defaults: &BTreeMap<String, String>,
    check: fn(&str) -> bool,
) -> Result<String, ChannelError> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        rest = after;
        if name == MODEL {
            filled.push_str("{model}");
            continue;
        }
        let default = || defaults.get(name).map(String::as_str);
        let value = account.get(name).or_else(default);
        let value = value.ok_or_else(|| ChannelError::NoSetting(name.to_owned()))?;
        if !check(value) {
            return Err(ChannelError::Setting(
                name.to_owned(),
                "may only have letters, digits and any of `-_.:`",
            ));
        }
        filled.push_str(value);
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Whether the value can be part of a host or a path without changing its structure.
pub(crate) fn is_plain(value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    !value.is_empty() && value.bytes().all(plain) && !value.bytes().all(|byte| byte == b'.')
}

/// Whether the value can be sent in a request at all.
pub(crate) fn is_printable(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(settings: &[(&str, &str)]) -> Account {
        let pairs = settings.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), Secret::new(value)))
            .collect()
    }

    #[test]
    fn templates_are_filled_from_the_account_and_then_from_the_defaults() {
        let defaults = BTreeMap::from([("location".to_owned(), "global".to_owned())]);
        let template = "/v1/projects/{project}/locations/{location}/models/{model}:act";
        for (settings, filled) in [
            (
                &[("project", "p-1")][..],
                "/v1/projects/p-1/locations/global/models/{model}:act",
            ),
            (
                &[("project", "corp.example:p"), ("location", "eu")],
                "/v1/projects/corp.example:p/locations/eu/models/{model}:act",
            ),
        ] {
            let account = account(settings);
            assert_eq!(
                fill(template, &account, &defaults, is_plain).unwrap(),
                filled
            );
        }
        assert_eq!(
            placeholders(template).collect::<Vec<_>>(),
            ["project", "location", "model"]
        );
    }

    #[test]
    fn a_value_that_would_change_the_form_of_an_address_is_refused() {
        let none = BTreeMap::new();
        for bad in ["", "a/b", "a?b", "a#b", "a b", "..", "a@b", "a\r\nb", "é"] {
            let account = account(&[("resource", bad)]);
            let filled = fill("https://{resource}.example.com", &account, &none, is_plain);
            assert!(matches!(filled, Err(ChannelError::Setting(..))), "{bad:?}");
        }
        let missing = fill("{resource}", &account(&[]), &none, is_plain);
        assert_eq!(missing, Err(ChannelError::NoSetting("resource".to_owned())));
    }
}
