//! The settings of a channel, and the words in them that identify the upstream.

use std::time::Duration;

use super::Channel;
use crate::channel_protocol::Protocol;
use crate::credential::{Account, names_of};
use crate::error::ChannelError;
use crate::preset::Preset;
use crate::secret::Secret;
use crate::timeouts::Timeouts;

/// The settings of a channel, as an operator writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    pub name: String,
    pub preset: Preset,
    /// The preset's default when absent.
    pub base_url: Option<String>,
    pub credential: Option<Secret>,
    /// The settings that the preset needs beside the credential, such as a project.
    pub account: Account,
    /// The preset's default when absent.
    pub protocols: Option<Vec<Protocol>>,
    /// Whether the upstream can reach private addresses that clients must not reach through it.
    pub private_network: bool,
    /// Whether the upstream never exceeds the output limit of a request. When absent, only a
    /// vendor's own endpoint is trusted to keep it.
    pub keeps_output_limit: Option<bool>,
    /// How long the upstream is read for its usage report after the client has gone; the node's
    /// value when absent.
    pub client_gone_drain: Option<Duration>,
    /// Whether the upstream can count the tokens of requests; the preset's default when absent.
    pub counts_tokens: Option<bool>,
    /// Whether requests name the trace that they belong to.
    pub sends_traceparent: bool,
}

impl ChannelSpec {
    /// Whether a channel can be made from the settings.
    pub fn check(&self) -> Result<(), ChannelError> {
        Channel::new(self.clone(), Timeouts::default()).map(drop)
    }
}

/// Host name labels that do not identify an owner.
const COMMON_LABELS: [&str; 8] = ["ai", "api", "cloud", "co", "com", "dev", "io", "www"];

/// Words that identify the upstream, in lower case: the channel's name, its host, the labels of the host, and the account.
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
