//! `account` of a `[[channel]]`: settings that a cloud needs in addition to the credential, such as a project.

use std::collections::BTreeMap;

use upstream::{Account, Preset, Secret, SettingNeed};

use crate::config::document::{
    Environment, SecretLookup, SecretSource, Section, read_source, value,
};

/// The account settings of a channel, by name.
pub type AccountSettings = BTreeMap<&'static str, AccountValue>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountValue {
    Text(String),
    /// A value in the environment or in a file, not looked up yet.
    Source(SecretSource),
}

/// Reads the account settings of the preset, and reports those that are missing.
pub(super) fn read(section: &mut Section<'_, '_, '_>, preset: Preset) -> AccountSettings {
    let settings = preset.account_settings();
    if settings.is_empty() {
        if section.has("account") {
            let path = section.path_of("account");
            let message = format!("preset `{preset}` has no account settings");
            section.log.report(section.span(), path, message);
            // Marks the member as known, so that it is not reported twice.
            section.raw("account");
        }
        return AccountSettings::new();
    }
    let has_address = section.has("base_url");
    let entry = section.span();
    section.table("account", |table| {
        let mut account = AccountSettings::new();
        for setting in settings {
            let name = setting.name;
            if table.has(name) {
                let is_table = table.raw(name).is_some_and(|it| it.get_ref().is_table());
                let value = if is_table || setting.is_secret {
                    read_source(table, name).map(AccountValue::Source)
                } else {
                    table.value(name, value::text).map(AccountValue::Text)
                };
                account.extend(value.map(|value| (name, value)));
                continue;
            }
            table.raw(name);
            let is_needed = match setting.need {
                SettingNeed::Always => true,
                SettingNeed::ForAddress => !has_address,
                SettingNeed::ForCredential => false,
            };
            if is_needed && setting.default.is_none() {
                let message = format!("is missing: preset `{preset}` needs it");
                table
                    .log
                    .report(entry.clone(), table.path_of(name), message);
            }
        }
        account
    })
}

/// Looks up the values that are in the environment or in files. `Err` says which value is missing or not valid.
pub(super) fn look_up(
    settings: &AccountSettings,
    environment: Environment<'_>,
) -> Result<Account, String> {
    let mut found = Vec::with_capacity(settings.len());
    for (name, value) in settings {
        let secret = match value {
            AccountValue::Text(text) => Secret::new(text),
            AccountValue::Source(source) => match source.look_up(environment)? {
                SecretLookup::Text(text) => Secret::new(&text),
                SecretLookup::Absent(reason) | SecretLookup::Empty(reason) => return Err(reason),
            },
        };
        found.push(((*name).to_owned(), secret));
    }
    Ok(found.into_iter().collect())
}

/// The settings whose values are in the configuration file itself.
pub(super) fn shown(settings: &AccountSettings) -> Account {
    let texts = settings.iter().filter_map(|(name, value)| match value {
        AccountValue::Text(text) => Some(((*name).to_owned(), Secret::new(text))),
        AccountValue::Source(_) => None,
    });
    texts.collect()
}
