//! Reads `catalog/presets.toml`, which is compiled into the program.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use protocol::OutputLimit;
use protocol::messages::HostedMessages;
use serde::Deserialize;

use crate::channel_protocol::Protocol;
use crate::credential::CredentialForm;

const FILE: &str = include_str!("../../../../catalog/presets.toml");

/// The facts about one preset, that is, one kind of upstream.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the facts are independent of each other"
)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) title: String,
    /// The first part of the public ids (`maker/model`) of the vendor's own models; absent if the vendor has none.
    pub(super) maker: Option<String>,
    /// Absent if there is no single address. Here and below, `{name}` is a placeholder for an account setting of the
    /// channel.
    pub(super) base_url: Option<String>,
    /// Other addresses, for some values of the account setting `location`.
    #[serde(default)]
    pub(super) locations: BTreeMap<String, String>,
    /// Default values of account settings.
    #[serde(default)]
    pub(super) account: BTreeMap<String, String>,
    /// The same service in other regions, each with its own accounts and keys.
    #[serde(default)]
    pub(super) regions: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) address: AddressForm,
    /// The environment variables that may contain a key, in order of preference.
    #[serde(default)]
    pub(super) env: Vec<String>,
    /// The environment variables that may contain the path of a key file, in order of preference.
    #[serde(default)]
    pub(super) file_env: Vec<String>,
    /// The environment variables that may contain account settings, by setting.
    #[serde(default)]
    pub(super) account_env: BTreeMap<String, Vec<String>>,
    /// The environment variables from which the vendor's own tools read another address.
    #[serde(default)]
    pub(super) base_url_env: Vec<String>,
    /// The header that contains nothing but the credential. If absent, the credential is sent as a bearer token.
    pub(super) credential_header: Option<String>,
    #[serde(default = "key_alone")]
    pub(super) credentials: Vec<CredentialForm>,
    /// How a token is requested, for credentials that are exchanged for one.
    pub(super) token: Option<TokenFacts>,
    /// The service name in signatures, if the credential can be an access key.
    pub(super) signing_service: Option<String>,
    #[serde(default = "yes")]
    pub(super) needs_credential: bool,
    /// The credential of a channel that configures none.
    pub(super) own_credential: Option<String>,
    /// Whether the upstream usually runs in the operator's own network.
    #[serde(default)]
    pub(super) private_network: bool,
    /// The protocols in order of preference.
    pub(super) protocols: Vec<Protocol>,
    #[serde(default)]
    pub(super) paths: Paths,
    /// Set if the upstream is a cloud that hosts Messages: the path names the model, and the body contains the API
    /// version.
    pub(super) hosted_messages: Option<HostedMessages>,
    /// The `anthropic-beta` values that are forwarded; all of them if absent.
    pub(super) betas: Option<Vec<String>>,
    #[serde(default = "yes")]
    pub(super) lists_models: bool,
    #[serde(default = "older_name")]
    pub(super) output_limit: OutputLimit,
    #[serde(default)]
    pub(super) stream_usage: StreamUsage,
    /// Whether embeddings of Generate Content are requested in the instances format.
    #[serde(default)]
    pub(super) embeds_instances: bool,
    /// The models whose embeddings are requested one content at a time, if `embeds_instances` is set.
    #[serde(default)]
    pub(super) embeds_content: ContentModels,
    /// The models that accept fewer instances per call than others, each with its maximum.
    #[serde(default)]
    pub(super) instances_max: BTreeMap<String, usize>,
    /// Whether the state of an operation is requested by a POST to the operation's model.
    #[serde(default)]
    pub(super) fetches_operations: bool,
    #[serde(default)]
    pub(super) counts_tokens: bool,
    #[serde(default)]
    pub(super) keeps_output_limit: bool,
    /// The vendor's names in `LiteLLM`'s price map.
    #[serde(default)]
    pub(super) litellm: Vec<String>,
    /// The vendor's names at models.dev.
    #[serde(default)]
    pub(super) models_dev: Vec<String>,
    /// The vendor's name in the conventions of OpenTelemetry, if it differs from the preset's name.
    pub(super) otel: Option<String>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    #[serde(default)]
    pub(super) unsure: Vec<String>,
    /// The sources of the facts, how far they were checked, and when. Only for readers of the file.
    #[serde(rename = "source")]
    _source: Option<String>,
    #[serde(rename = "checked")]
    _checked: Option<String>,
    #[serde(rename = "date")]
    _date: Option<toml::value::Datetime>,
}

/// The header in which a credential is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    /// `authorization: Bearer …`
    Bearer,
    /// Only the credential, in a header of this name.
    Header(&'static str),
}

/// The part of the path that a preset's `base_url` already contains, as in the vendor's SDK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AddressForm {
    /// The address with a version path (`…/v1`).
    #[default]
    Versioned,
    /// The bare host, to which `/v1/…` is appended.
    Bare,
    /// The bare host, to which `/v1beta/…` is appended.
    BareBeta,
}

/// Paths that cannot be derived from the address, relative to the root of the host. `{model}` is a placeholder for the
/// model of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Paths {
    pub(crate) chat: Option<String>,
    pub(crate) responses: Option<String>,
    pub(crate) messages: Option<String>,
    /// The path for streams, if it differs from `messages`.
    pub(crate) messages_stream: Option<String>,
    pub(crate) message_count: Option<String>,
    /// The path of a Generate Content model, without the verb.
    pub(crate) generate: Option<String>,
    pub(crate) embeddings: Option<String>,
    pub(crate) image_generations: Option<String>,
    pub(crate) image_edits: Option<String>,
}

impl Paths {
    /// The paths that are set.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        let all = [
            &self.chat,
            &self.responses,
            &self.messages,
            &self.messages_stream,
            &self.message_count,
            &self.generate,
            &self.embeddings,
            &self.image_generations,
            &self.image_edits,
        ];
        all.into_iter().flatten().map(String::as_str)
    }
}

/// Selects models by their names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentModels {
    /// A model matches if its name contains one of these words.
    pub(super) words: Vec<String>,
    /// Models that do not match although their names contain one of the words.
    pub(super) except: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenFacts {
    /// The token endpoint. A key file may name another.
    pub(super) url: String,
    pub(super) scope: String,
}

/// Whether the usage of a chat stream can be requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StreamUsage {
    /// `stream_options.include_usage` requests it. Servers that do not know this member ignore it.
    #[default]
    OnRequest,
    /// The upstream always reports the usage. Such vendors may refuse unknown members.
    Always,
    /// The vendor refuses requests with `stream_options`, and may not report the usage.
    Refused,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "date")]
    _date: toml::value::Datetime,
    preset: Vec<Facts>,
}

fn yes() -> bool {
    true
}

fn key_alone() -> Vec<CredentialForm> {
    vec![CredentialForm::Key]
}

/// The default is the older name of the output limit, which every server accepts.
fn older_name() -> OutputLimit {
    OutputLimit::MaxTokens
}

/// All presets, in the order of the file.
pub(super) fn all() -> &'static [Facts] {
    static ALL: LazyLock<Vec<Facts>> = LazyLock::new(|| match toml::from_str::<File>(FILE) {
        Ok(file) => file.preset,
        // A test reads this file, so a release cannot contain an invalid file.
        Err(fault) => unreachable!("catalog/presets.toml: {fault}"),
    });
    &ALL
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::address::Address;

    #[test]
    fn every_preset_is_sound() {
        let mut names = BTreeSet::new();
        let mut variables = BTreeSet::new();
        for facts in all() {
            let name = &facts.name;
            assert!(names.insert(name), "{name} twice");
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{name}"
            );
            assert!(!facts.title.is_empty(), "{name}");
            assert!(!facts.protocols.is_empty(), "{name}");
            let protocols: BTreeSet<_> = facts.protocols.iter().map(|it| it.as_str()).collect();
            assert_eq!(protocols.len(), facts.protocols.len(), "{name}");
            let urls = facts.base_url.iter().chain(facts.regions.values());
            for url in urls.chain(facts.locations.values()) {
                let filled = url.replace(['{', '}'], "");
                let address = Address::parse(&filled).unwrap();
                assert!(address.tls || facts.private_network, "{name}: {url}");
                assert!(!url.ends_with('/'), "{name}: {url}");
            }
            // The name of an environment variable must identify its vendor.
            let variables_of_preset = facts.env.iter().chain(&facts.file_env);
            for variable in variables_of_preset.chain(&facts.base_url_env) {
                assert!(variables.insert(variable), "{variable} twice");
            }
            assert!(
                facts.own_credential.is_none() || !facts.needs_credential,
                "{name}"
            );
            assert!(!facts.credentials.is_empty(), "{name}");
            let gets_tokens = facts.credentials.iter().any(|form| {
                let tokens = [
                    CredentialForm::ClientCredentials,
                    CredentialForm::ServiceAccount,
                ];
                tokens.contains(form)
            });
            assert_eq!(gets_tokens, facts.token.is_some(), "{name}");
            let is_signed = facts.credentials.contains(&CredentialForm::AccessKey);
            assert_eq!(is_signed, facts.signing_service.is_some(), "{name}");
            for path in facts.paths.named() {
                assert!(path.starts_with('/'), "{name}: {path}");
                assert!(path.matches('{').count() == path.matches('}').count());
            }
            if facts.paths.messages.is_some() || facts.hosted_messages.is_some() {
                assert!(facts.protocols.contains(&Protocol::Messages), "{name}");
            }
        }
    }
}
