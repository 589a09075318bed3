//! Changes of the channels and models: the resulting entries, and the audit row.

use store::AuditAction;

use super::catalog_keeper::ReplaceError;
use crate::config::Entries;

#[derive(Debug)]
pub(super) enum Change {
    /// Replaces the entries in force, if `version` is still their version.
    Replace { version: u64, entries: Entries },
    /// Switches a channel on or off.
    Switch { channel: String, enabled: bool },
}

impl Change {
    /// The entries after the change. `version` is the version of the entries before it.
    pub(super) fn apply(&self, before: &Entries, version: u64) -> Result<Entries, ReplaceError> {
        match self {
            Self::Replace {
                version: expected,
                entries,
            } => {
                if version != *expected {
                    return Err(ReplaceError::Version);
                }
                let mut after = entries.clone();
                after.keep_credentials_of(before);
                Ok(after)
            }
            Self::Switch { channel, enabled } => {
                let mut after = before.clone();
                if !after.switch_channel(channel, *enabled) {
                    return Err(ReplaceError::NoChannel(channel.clone()));
                }
                Ok(after)
            }
        }
    }

    pub(super) fn action(&self, before: &Entries, after: &Entries) -> AuditAction {
        match self {
            Self::Replace { .. } => entries_action("config.replace", "config", before, after),
            Self::Switch { channel, enabled } => switch_action(channel, *enabled, before, after),
        }
    }
}

/// The audit row of a channel that is switched on or off.
pub(crate) fn switch_action(
    channel: &str,
    enabled: bool,
    before: &Entries,
    after: &Entries,
) -> AuditAction {
    let action = if enabled {
        "channel.enable"
    } else {
        "channel.disable"
    };
    entries_action(action, channel, before, after)
}

/// An audit row with the entries that differ. It contains no secret, because entries only name credentials.
fn entries_action(
    action: &'static str,
    target: &str,
    before: &Entries,
    after: &Entries,
) -> AuditAction {
    let to_json = |entries: Entries| serde_json::to_string(&entries).ok();
    AuditAction {
        action,
        target: target.to_owned(),
        before: to_json(before.without_those_of(after)),
        after: to_json(after.without_those_of(before)),
    }
}
