//! A preset: a named kind of upstream, with access to its facts.

use std::fmt;
use std::str::FromStr;

use protocol::OutputLimit;
use protocol::messages::HostedMessages;

use super::facts::{self, AddressForm, Auth, Facts, Paths, StreamUsage};
use crate::channel_protocol::Protocol;
use crate::credential::{
    Account, CredentialForm, MODEL, fill, is_plain, is_printable, placeholders,
};
use crate::error::ChannelError;
use crate::unknown_name::{UnknownName, find};

/// A kind of upstream, with its default address, its credential header and its protocols.
#[derive(Clone, Copy)]
pub struct Preset(&'static Facts);

impl Preset {
    /// All presets, in the order of the documentation.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        facts::all().iter().map(Self)
    }

    /// The name in a configuration file.
    pub fn as_str(self) -> &'static str {
        &self.0.name
    }

    /// The display name.
    pub fn title(self) -> &'static str {
        &self.0.title
    }

    /// The first part of the public ids (`maker/model`) of the vendor's own models.
    pub fn maker(self) -> Option<&'static str> {
        self.0.maker.as_deref()
    }

    /// The member of a chat request that limits the output.
    pub fn output_limit(self) -> OutputLimit {
        self.0.output_limit
    }

    /// Whether the usage of a chat stream may be requested.
    pub fn takes_stream_options(self) -> bool {
        self.0.stream_usage == StreamUsage::OnRequest
    }

    /// The vendor's address, if there is a single one.
    pub fn base_url(self) -> Option<&'static str> {
        self.0.base_url.as_deref()
    }

    /// The addresses of the vendor's regions, by name.
    pub fn regions(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let regions = self.0.regions.iter();
        regions.map(|(name, url)| (name.as_str(), url.as_str()))
    }

    /// The environment variables that may contain the key, in order of preference.
    pub fn key_variables(self) -> &'static [String] {
        &self.0.env
    }

    /// The environment variables that may contain the path of a key file.
    pub fn key_file_variables(self) -> &'static [String] {
        &self.0.file_env
    }

    /// The environment variables that may contain an account setting.
    pub fn account_variables(self, setting: &str) -> &'static [String] {
        self.0.account_env.get(setting).map_or(&[], Vec::as_slice)
    }

    /// The environment variables that may contain another address.
    pub fn base_url_variables(self) -> &'static [String] {
        &self.0.base_url_env
    }

    /// Whether an upstream at `base_url` (the vendor's own if absent) is trusted to respect the output limit of a
    /// request. Only a vendor's own endpoint is.
    pub fn keeps_output_limit(self, base_url: Option<&str>) -> bool {
        let bare = |url: &str| url.trim_end_matches('/').to_owned();
        self.0.keeps_output_limit
            && self
                .base_url()
                .is_some_and(|own| base_url.is_none_or(|named| bare(named) == bare(own)))
    }

    /// Whether upstreams of this kind can count the tokens of requests in their own protocols.
    pub fn counts_tokens(self) -> bool {
        self.0.counts_tokens
    }

    /// Whether embeddings of Generate Content are requested in the instances format.
    pub fn embeds_instances(self) -> bool {
        self.0.embeds_instances
    }

    /// Whether embeddings of this model are requested one content at a time, instead of in the instances format.
    pub fn embeds_content(self, model: &str) -> bool {
        let models = &self.0.embeds_content;
        let is_other = models.except.iter().any(|name| name == model);
        !is_other && models.words.iter().any(|word| model.contains(word))
    }

    /// The maximum number of inputs of an embeddings call in the instances format, if it is known for this model.
    pub fn instances_max(self, model: &str) -> Option<usize> {
        self.0.instances_max.get(model).copied()
    }

    pub(crate) fn fetches_operations(self) -> bool {
        self.0.fetches_operations
    }

    /// Whether the upstream can list its models.
    pub fn lists_models(self) -> bool {
        self.0.lists_models
    }

    /// The protocols that a channel speaks by default. Calls in other dialects are converted to the first text
    /// protocol.
    pub fn protocols(self) -> &'static [Protocol] {
        &self.0.protocols
    }

    /// Whether the upstream refuses calls without a credential.
    pub fn needs_credential(self) -> bool {
        self.0.needs_credential
    }

    /// Whether the upstream usually runs in the operator's own network. Callers must not reach that network through it.
    pub fn is_in_private_network(self) -> bool {
        self.0.private_network
    }

    /// The credential of a channel that configures none. The simulated upstream requires a key, as vendors do, but
    /// accepts any key, so operators need not invent one.
    pub fn default_credential(self) -> Option<&'static str> {
        self.0.own_credential.as_deref()
    }

    /// The vendor's names in `LiteLLM`'s price map.
    pub fn litellm_names(self) -> &'static [String] {
        &self.0.litellm
    }

    /// The vendor's names at models.dev.
    pub fn models_dev_names(self) -> &'static [String] {
        &self.0.models_dev
    }

    /// The vendor's name in the conventions of OpenTelemetry.
    pub fn provider_name(self) -> &'static str {
        self.0.otel.as_deref().unwrap_or(self.as_str())
    }

    /// Notes for operators.
    pub fn notes(self) -> &'static [String] {
        &self.0.notes
    }

    /// Facts that no source of the vendor confirms.
    pub fn unsure(self) -> &'static [String] {
        &self.0.unsure
    }

    pub(crate) fn auth(self) -> Auth {
        match &self.0.credential_header {
            Some(name) => Auth::Header(name),
            None => Auth::Bearer,
        }
    }

    pub(crate) fn address_form(self) -> AddressForm {
        self.0.address
    }

    pub(crate) fn paths(self) -> &'static Paths {
        &self.0.paths
    }

    pub(crate) fn credential_forms(self) -> &'static [CredentialForm] {
        &self.0.credentials
    }

    /// How Messages requests to this cloud differ from those to the vendor of the API; `None` if they do not.
    pub(crate) fn hosted_messages(self) -> Option<&'static HostedMessages> {
        self.0.hosted_messages.as_ref()
    }

    pub(crate) fn signing_service(self) -> Option<&'static str> {
        self.0.signing_service.as_deref()
    }

    pub(crate) fn betas(self) -> Option<&'static [String]> {
        self.0.betas.as_deref()
    }

    /// The vendor's address for an account, if there is a single one.
    pub fn base_url_of(self, account: &Account) -> Result<Option<String>, ChannelError> {
        let named = account.get("location").or(self.default_of("location"));
        let by_location = named.and_then(|name| self.0.locations.get(name));
        let template = by_location.or(self.0.base_url.as_ref());
        let filled = template.map(|it| fill(it, account, &self.0.account, is_plain));
        filled.transpose()
    }

    /// A path with the placeholders of an account filled in. `{model}` stays.
    pub(crate) fn fill_path(self, path: &str, account: &Account) -> Result<String, ChannelError> {
        fill(path, account, &self.0.account, is_plain)
    }

    /// The address of the token endpoint, and the scope of the tokens.
    pub(crate) fn token_facts(self, account: &Account) -> Result<(String, String), ChannelError> {
        let token = self.0.token.as_ref().ok_or(ChannelError::CredentialForm)?;
        let filled = |template: &str| fill(template, account, &self.0.account, is_printable);
        Ok((filled(&token.url)?, filled(&token.scope)?))
    }

    fn default_of(self, setting: &str) -> Option<&'static str> {
        self.0.account.get(setting).map(String::as_str)
    }

    /// The account settings that a channel may have.
    pub fn account_settings(self) -> Vec<AccountSetting> {
        let facts = self.0;
        let addresses = facts.base_url.iter().chain(facts.locations.values());
        let in_address: Vec<_> = addresses.flat_map(|it| placeholders(it)).collect();
        let in_paths: Vec<_> = facts.paths.named().flat_map(placeholders).collect();
        let mut settings: Vec<AccountSetting> = Vec::new();
        let mut add = |name: &'static str, need: SettingNeed| {
            if name != MODEL && !settings.iter().any(|known| known.name == name) {
                let default = self.default_of(name);
                let is_secret = CredentialForm::is_secret(name);
                settings.push(AccountSetting {
                    name,
                    need,
                    default,
                    is_secret,
                });
            }
        };
        for name in in_paths {
            add(name, SettingNeed::Always);
        }
        for name in in_address {
            add(name, SettingNeed::ForAddress);
        }
        for form in &facts.credentials {
            for name in form.settings() {
                add(name, SettingNeed::ForCredential);
            }
        }
        if let Some(token) = &facts.token {
            let names = placeholders(&token.url).chain(placeholders(&token.scope));
            names.for_each(|name| add(name, SettingNeed::ForCredential));
        }
        settings
    }
}

/// An account setting of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountSetting {
    pub name: &'static str,
    pub need: SettingNeed,
    /// The default value.
    pub default: Option<&'static str>,
    /// Whether the setting is a secret, whose value must not be written in a configuration file.
    pub is_secret: bool,
}

/// When an account setting is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingNeed {
    /// It is needed for every call.
    Always,
    /// It is needed unless the channel sets its own `base_url`.
    ForAddress,
    /// It is needed if the credential has a form that uses it.
    ForCredential,
}

impl PartialEq for Preset {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Preset {}

impl fmt::Debug for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Preset({})", self.as_str())
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let all: Vec<_> = Self::all().collect();
        find(name, &all, Self::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_vendors_own_endpoint_is_trusted_with_the_output_limit() {
        for (preset, base_url, keeps) in [
            ("openai", None, true),
            ("openai", Some("https://api.openai.com/v1/"), true),
            ("openai", Some("https://proxy.example.com/v1"), false),
            ("anthropic", None, true),
            ("gemini", Some("http://127.0.0.1:1"), false),
            (
                "openai-compatible",
                Some("https://api.openai.com/v1"),
                false,
            ),
            ("sim", Some("http://127.0.0.1:1"), false),
            ("sim", None, false),
            ("siliconflow", None, false),
        ] {
            let preset: Preset = preset.parse().unwrap();
            assert_eq!(
                preset.keeps_output_limit(base_url),
                keeps,
                "{preset} {base_url:?}"
            );
        }
    }

    #[test]
    fn every_name_reads_back_as_itself() {
        for preset in Preset::all() {
            assert_eq!(preset.as_str().parse(), Ok(preset));
        }
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_known_ones() {
        let error = "opena".parse::<Preset>().unwrap_err().to_string();
        let start =
            "\"opena\" is none of: openai anthropic gemini xai ark openai-compatible sim byteplus ";
        assert!(error.starts_with(start), "{error}");
    }

    /// These presets must not change, because configurations of the first releases use them.
    #[test]
    fn the_oldest_presets_are_what_they_were() {
        let shown = |preset: Preset| {
            let protocols: Vec<_> = preset.protocols().iter().map(|it| it.as_str()).collect();
            format!(
                "{preset} {} {:?} {:?} {} {} {} {}",
                preset.base_url().unwrap_or("-"),
                preset.auth(),
                preset.address_form(),
                preset.output_limit().as_str(),
                preset.counts_tokens(),
                preset.needs_credential(),
                protocols.join(" "),
            )
        };
        let first: Vec<_> = Preset::all().take(7).map(shown).collect();
        assert_eq!(
            first,
            [
                "openai https://api.openai.com/v1 Bearer Versioned max_completion_tokens true true \
                 chat responses embeddings images",
                "anthropic https://api.anthropic.com Header(\"x-api-key\") Bare max_tokens true true \
                 messages",
                "gemini https://generativelanguage.googleapis.com Header(\"x-goog-api-key\") BareBeta \
                 max_tokens true true generate interactions omni predict",
                "xai https://api.x.ai/v1 Bearer Versioned max_completion_tokens false true \
                 chat responses images video-a voice",
                "ark https://ark.cn-beijing.volces.com/api/v3 Bearer Versioned max_tokens false true \
                 chat responses embeddings images content-task",
                "openai-compatible - Bearer Versioned max_tokens false false chat embeddings",
                "sim - Bearer Versioned max_completion_tokens true false chat responses messages \
                 generate interactions embeddings images video-a omni predict content-task voice",
            ]
        );
    }
}
