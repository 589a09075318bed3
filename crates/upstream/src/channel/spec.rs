//! The settings of a channel, and the words in them that identify the upstream.

use std::time::Duration;

use super::Channel;
use crate::channel_protocol::Protocol;
use crate::credential::{Account, names_of};
use crate::error::ChannelError;
use crate::preset::Preset;
use crate::secret::Secret;
use crate::timeouts::Timeouts;

/// The settings of a channel as an operator writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    pub name: String,
    pub preset: Preset,
    /// The preset's default if absent.
    pub base_url: Option<String>,
    pub credential: Option<Secret>,
    /// The settings that the preset needs in addition to the credential, such as a project.
    pub account: Account,
    /// The preset's default if absent.
    pub protocols: Option<Vec<Protocol>>,
    /// Whether the upstream can reach private addresses. Clients must not reach these through it.
    pub private_network: bool,
    /// Whether the upstream never exceeds the output limit of a request. If absent, only a vendor's
    /// own endpoint is trusted to respect the limit.
    pub keeps_output_limit: Option<bool>,
    /// How long to keep reading for the usage report after the client has gone; the node's setting
    /// if absent.
    pub client_gone_drain: Option<Duration>,
    /// Whether the upstream can count the tokens of requests; the preset's default if absent.
    pub counts_tokens: Option<bool>,
    /// Whether requests carry a `traceparent` header.
    pub sends_traceparent: bool,
}

impl ChannelSpec {
    /// Checks that a channel can be created from these settings.
    pub fn check(&self) -> Result<(), ChannelError> {
        Channel::new(self.clone(), Timeouts::default()).map(drop)
    }
}

/// Host name labels that do not identify the owner of a host.
const COMMON_LABELS: [&str; 8] = ["ai", "api", "cloud", "co", "com", "dev", "io", "www"];

/// Lower-case words that identify the upstream: the channel's name, its host, the labels of the
/// host, and the account.
pub(super) fn identity_words(spec: &ChannelSpec, host: &str) -> Box<[Box<str>]> {
    let host = host.to_ascii_lowercase();
    let labels = host
        .split(['.', '-'])
        .filter(|label| label.len() > 1 && !COMMON_LABELS.contains(label))
        .filter(|label| !label.bytes().all(|byte| byte.is_ascii_digit()));
    let mut words: Vec<Box<str>> = labels.map(Into::into).collect();
    words.push(spec.name.to_ascii_lowercase().into());
    words.push(host.as_str().into());
    let account = spec.account.values().map(str::to_ascii_lowercase);
    words.extend(account.map(Into::into));
    let key_file = spec.credential.as_ref().map(names_of).unwrap_or_default();
    words.extend(key_file.iter().map(|it| it.to_ascii_lowercase().into()));
    words.retain(|word| word.len() > 1);
    words.into()
}
