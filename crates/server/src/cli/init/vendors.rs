//! Finds vendors whose keys are in environment variables, or in files that such variables name.

use upstream::{Preset, SettingNeed};

use crate::known_models::KnownModels;

/// A vendor whose key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundVendor {
    pub(super) preset: Preset,
    pub(super) credential: FoundCredential,
    /// The account settings that were found, each with the variable that contains it.
    pub(super) account: Vec<(&'static str, &'static str)>,
    /// The base URL from the environment, if a variable names one.
    pub(super) base_url: Option<String>,
    /// The number of the vendor's models in the catalog.
    pub(super) models: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FoundCredential {
    /// The variable that contains the key. The value of the key is never kept.
    Variable(&'static str),
    /// The key file that a variable names.
    File {
        variable: &'static str,
        path: String,
    },
}

impl FoundCredential {
    /// The variable that contains the credential or names its file.
    pub(super) fn variable(&self) -> &'static str {
        match self {
            Self::Variable(variable) | Self::File { variable, .. } => variable,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct FoundVendors {
    pub(super) vendors: Vec<FoundVendor>,
    /// Messages about vendors whose key was found without the other settings that they need.
    pub(super) incomplete: Vec<String>,
}

/// Looks for keys under the names that the presets list.
pub(super) fn find(
    known: &KnownModels,
    environment: impl Fn(&str) -> Option<String>,
) -> FoundVendors {
    let filled = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
    let first = |names: &'static [String]| {
        let mut names = names.iter().map(String::as_str);
        names.find_map(|name| Some((name, filled(name)?)))
    };
    let mut found = FoundVendors::default();
    for preset in Preset::all() {
        let file = || {
            let (variable, path) = first(preset.key_file_variables())?;
            // The variable is relative to the current folder, but the configuration resolves paths from its own.
            let absolute = std::path::absolute(path.trim()).ok();
            let absolute = absolute.and_then(|path| path.into_os_string().into_string().ok());
            let path = absolute.unwrap_or(path);
            Some(FoundCredential::File { variable, path })
        };
        let key = first(preset.key_variables());
        let key = key.map(|(variable, _)| FoundCredential::Variable(variable));
        let Some(credential) = key.or_else(file) else {
            continue;
        };
        let base_url = first(preset.base_url_variables()).map(|(_, url)| url.trim().to_owned());
        let mut account = Vec::new();
        let mut missing = Vec::new();
        for setting in preset.account_settings() {
            let is_needed = match setting.need {
                SettingNeed::Always => true,
                SettingNeed::ForAddress => base_url.is_none(),
                SettingNeed::ForCredential => continue,
            };
            let variables = preset.account_variables(setting.name);
            match first(variables) {
                Some((variable, _)) => account.push((setting.name, variable)),
                None if is_needed && setting.default.is_none() => {
                    missing.push(format!("{} ({})", setting.name, variables.join(" or ")));
                }
                None => {}
            }
        }
        if missing.is_empty() {
            found.vendors.push(FoundVendor {
                preset,
                credential,
                account,
                base_url,
                models: known.of_preset(preset).count(),
            });
        } else {
            found.incomplete.push(format!(
                "{} was found, but {} also needs {}",
                credential.variable(),
                preset.title(),
                missing.join(", ")
            ));
        }
    }
    found
}

/// The first key variable of each preset, for the error message if no key is found.
pub(super) fn usual_variables() -> Vec<&'static str> {
    let usual = Preset::all().filter_map(|preset| preset.key_variables().first());
    usual.map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_any_of_their_names_and_empty_ones_are_not() {
        let environment = |name: &str| match name {
            "OPENAI_API_KEY" => Some("x".to_owned()),
            "OPENAI_BASE_URL" => Some(" http://127.0.0.1:9/v1 ".to_owned()),
            "ANTHROPIC_API_KEY" => Some("  ".to_owned()),
            "GOOGLE_API_KEY" | "OPENROUTER_API_KEY" => Some("y".to_owned()),
            _ => None,
        };
        let found = find(KnownModels::built_in(), environment).vendors;
        let names: Vec<_> = found
            .iter()
            .map(|it| {
                let variable = it.credential.variable();
                (it.preset.as_str(), variable, it.base_url.as_deref())
            })
            .collect();
        assert_eq!(
            names,
            [
                ("openai", "OPENAI_API_KEY", Some("http://127.0.0.1:9/v1")),
                ("gemini", "GOOGLE_API_KEY", None),
                ("openrouter", "OPENROUTER_API_KEY", None),
            ]
        );
        assert!(found[0].models > 20);
        assert_eq!(found[2].models, 0);
        assert!(usual_variables().contains(&"OPENAI_API_KEY"));
    }

    /// The configuration resolves paths from its own folder, and the variable is relative to the current one.
    #[test]
    fn the_path_of_a_key_file_is_absolute() {
        let current = std::env::current_dir().unwrap();
        for (named, expected) in [
            ("account.json", current.join("account.json")),
            ("./keys/account.json", current.join("keys/account.json")),
            ("/keys/account.json", "/keys/account.json".into()),
        ] {
            let environment = |name: &str| match name {
                "GOOGLE_APPLICATION_CREDENTIALS" => Some(named.to_owned()),
                "GOOGLE_CLOUD_PROJECT" => Some("p-1".to_owned()),
                _ => None,
            };
            let found = find(KnownModels::built_in(), environment);
            let credential = FoundCredential::File {
                variable: "GOOGLE_APPLICATION_CREDENTIALS",
                path: expected.to_str().unwrap().to_owned(),
            };
            assert_eq!(found.vendors[0].credential, credential, "{named}");
        }
    }

    #[test]
    fn a_cloud_is_found_with_the_settings_that_it_needs() {
        let environment = |name: &str| match name {
            "AZURE_API_KEY" | "ANTHROPIC_FOUNDRY_API_KEY" => Some("x".to_owned()),
            "AZURE_RESOURCE_NAME" => Some("contoso".to_owned()),
            "GOOGLE_APPLICATION_CREDENTIALS" => Some("/keys/account.json".to_owned()),
            "GOOGLE_CLOUD_PROJECT" => Some("p-1".to_owned()),
            _ => None,
        };
        let found = find(KnownModels::built_in(), environment);
        let shown: Vec<_> = found
            .vendors
            .iter()
            .map(|it| (it.preset.as_str(), it.account.as_slice()))
            .collect();
        assert_eq!(
            shown,
            [
                ("azure", &[("resource", "AZURE_RESOURCE_NAME")][..]),
                ("vertex", &[("project", "GOOGLE_CLOUD_PROJECT")]),
            ]
        );
        assert_eq!(
            found.vendors[1].credential,
            FoundCredential::File {
                variable: "GOOGLE_APPLICATION_CREDENTIALS",
                path: "/keys/account.json".to_owned(),
            }
        );
        assert_eq!(
            found.incomplete,
            [
                "ANTHROPIC_FOUNDRY_API_KEY was found, but Anthropic models in Azure Foundry also needs resource \
              (ANTHROPIC_FOUNDRY_RESOURCE)"
            ]
        );
    }
}
