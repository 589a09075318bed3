//! Alerts, the rules that send them to webhooks, and their deliveries.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ledger::{Micro, UnixMs};

use super::ids::{AlertId, RuleId, WalletId};

/// The kind of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertKind {
    /// A wallet has less than the amount that it or a rule sets.
    LowBalance,
    /// A key has used 80 % or all of a limit.
    KeyLimit,
    /// A channel has failed repeatedly and is avoided.
    ChannelDown,
    /// More calls fail than usual.
    ErrorRate,
    /// The database refuses to book finished calls.
    StuckCloses,
}

impl AlertKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::LowBalance,
        Self::KeyLimit,
        Self::ChannelDown,
        Self::ErrorRate,
        Self::StuckCloses,
    ];

    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LowBalance => "low_balance",
            Self::KeyLimit => "key_limit",
            Self::ChannelDown => "channel_down",
            Self::ErrorRate => "error_rate",
            Self::StuckCloses => "stuck_closes",
        }
    }

    /// Whether alerts of this kind are about one wallet.
    pub fn is_about_wallets(self) -> bool {
        matches!(self, Self::LowBalance | Self::KeyLimit)
    }
}

impl fmt::Display for AlertKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a kind of alert.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a kind is low_balance, key_limit, channel_down, error_rate or stuck_closes")]
pub struct UnknownAlertKind;

impl FromStr for AlertKind {
    type Err = UnknownAlertKind;

    fn from_str(word: &str) -> Result<Self, UnknownAlertKind> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or(UnknownAlertKind)
    }
}

/// The kinds of a rule as they are stored.
pub(crate) fn kinds_text(kinds: &[AlertKind]) -> String {
    let words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    words.join(",")
}

/// Parses stored kinds. Skips kinds that only a later version knows.
pub(crate) fn stored_kinds(text: &str) -> Vec<AlertKind> {
    text.split(',')
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// The URL of a webhook, and the secret that signs deliveries to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    pub secret: String,
}

/// Hides everything: the URL of a webhook may contain a secret too.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").finish_non_exhaustive()
    }
}

/// A new rule: which alerts are sent to which webhook.
#[derive(Debug, Clone)]
pub struct NewRule {
    pub kinds: Vec<AlertKind>,
    pub webhook: Webhook,
    /// The URL without parts that may be secret, for the audit.
    pub shown_url: String,
    /// Only alerts about this wallet and its keys.
    pub wallet: Option<WalletId>,
    /// The balance below which the rule raises an alert. A wallet's own amount overrides that of a rule for all
    /// wallets.
    pub below: Option<Micro>,
}

/// A stored rule.
#[derive(Debug, Clone)]
pub struct RuleRow {
    pub id: RuleId,
    pub kinds: Vec<AlertKind>,
    pub url: String,
    pub wallet: Option<WalletId>,
    pub wallet_name: Option<String>,
    pub below: Option<Micro>,
    pub created_at: UnixMs,
    /// The latest attempt to deliver an alert of this rule.
    pub last_attempt: Option<LastAttempt>,
}

/// The outcome of a rule's latest delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAttempt {
    pub at: UnixMs,
    /// Why the attempt failed. `None` if it succeeded.
    pub problem: Option<String>,
}

/// The maximum number of rules.
pub const ALERT_RULES_MAX: usize = 100;

/// The maximum number of concurrent deliveries per rule, so that an unresponsive webhook leaves room for the others.
pub(crate) const CLAIMS_PER_RULE: u32 = 4;

/// The maximum number of concurrent deliveries of all rules together.
pub const ALERT_DELIVERIES_MAX: usize = ALERT_RULES_MAX * CLAIMS_PER_RULE as usize;

/// A new alert.
#[derive(Debug, Clone)]
pub struct NewAlert {
    pub id: AlertId,
    pub kind: AlertKind,
    /// Identifies the problem. It stays the same while the alert is open, and no two open alerts have the same
    /// condition.
    pub condition: String,
    /// The wallet, key or channel that the alert is about.
    pub subject: Option<String>,
    /// The wallet that the alert is about, or that owns the key.
    pub wallet: Option<WalletId>,
    /// A sentence for people.
    pub message: String,
    /// The rules whose webhooks are notified.
    pub rules: Vec<RuleId>,
}

/// A stored alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRow {
    pub cursor: AlertCursor,
    pub id: AlertId,
    pub kind: AlertKind,
    pub condition: String,
    pub subject: Option<String>,
    pub wallet: Option<WalletId>,
    pub message: String,
    pub at: UnixMs,
    pub ended_at: Option<UnixMs>,
    pub delivery: DeliveryState,
}

/// A position among the alerts, for paging. Newer alerts have larger numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AlertCursor(pub i64);

/// The state of all deliveries of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// No rule matches the alert.
    None,
    /// A delivery is still pending.
    Pending,
    Delivered,
    /// At least one delivery was given up.
    Failed,
}

impl DeliveryState {
    /// The word that is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// Computes the state from the counts of pending, given-up and all deliveries.
    pub(crate) fn of(waiting: i64, given_up: i64, all: i64) -> Self {
        match (waiting, given_up, all) {
            (_, _, 0) => Self::None,
            (1.., _, _) => Self::Pending,
            (_, 1.., _) => Self::Failed,
            _ => Self::Delivered,
        }
    }
}

/// A query for alerts, newest first. An alert must meet every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertQuery {
    pub only_open: bool,
    pub kind: Option<AlertKind>,
    pub wallet: Option<WalletId>,
    /// Alerts older than this position: the next page.
    pub before: Option<AlertCursor>,
    /// 0 means the maximum of 1,000.
    pub limit: u32,
}

/// The maximum number of alerts per page.
pub const ALERTS_MAX: u32 = 1_000;

impl AlertQuery {
    pub(crate) fn rows_max(&self) -> u32 {
        match self.limit {
            0 => ALERTS_MAX,
            limit => limit.min(ALERTS_MAX),
        }
    }
}

/// A problem that a node reports about itself or its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSignal {
    pub condition: String,
    pub kind: AlertKind,
    pub subject: Option<String>,
    pub message: String,
}

/// The event that a delivery reports: the start or the end of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertEvent {
    Begin,
    End,
}

impl AlertEvent {
    /// The word that is stored and sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::End => "end",
        }
    }

    /// Parses the stored word.
    pub(crate) fn stored(word: &str) -> Self {
        // The table has a CHECK constraint that allows no other word.
        match word {
            "end" => Self::End,
            _ => Self::Begin,
        }
    }
}

/// A delivery that this node has claimed.
#[derive(Debug, Clone)]
pub struct DeliveryRow {
    pub claim: DeliveryClaim,
    pub event: AlertEvent,
    pub rule: RuleId,
    pub webhook: Webhook,
    pub alert: AlertRow,
}

/// A claim on a delivery. The attempt number is its fencing number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryClaim {
    pub number: i64,
    /// Counted from 1.
    pub attempt: i64,
}

/// The outcome of a delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// The delivery is tried again after this pause.
    Again {
        after: Duration,
        problem: String,
    },
    GivenUp {
        problem: String,
    },
}

/// Reports the outcome of a claimed delivery attempt to the store.
#[derive(Debug, Clone)]
pub struct DeliveryReport {
    pub claim: DeliveryClaim,
    pub outcome: DeliveryOutcome,
    pub now: UnixMs,
}

/// The columns of a delivery after an attempt: the pause before the next attempt, the outcome, and the problem.
pub(crate) type DeliveryColumns<'a> = (Option<Duration>, Option<&'static str>, Option<&'a str>);

impl DeliveryOutcome {
    pub(crate) fn columns(&self) -> DeliveryColumns<'_> {
        match self {
            Self::Delivered => (None, Some("delivered"), None),
            Self::Again { after, problem } => (Some(*after), None, Some(problem)),
            Self::GivenUp { problem } => (None, Some("given_up"), Some(problem)),
        }
    }
}

/// An active wallet with less than the amount that it or a rule sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowWallet {
    pub row_number: i64,
    pub id: WalletId,
    pub name: String,
    /// Paid and gift credits, less the used credit line. Holds of open calls are not subtracted.
    pub balance: Micro,
    /// The amount that the wallet itself sets.
    pub below: Option<Micro>,
}

/// A page of a scan: the rows after a row number, up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanPage {
    pub(crate) after: i64,
    pub(crate) limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_from_their_words() {
        let text = kinds_text(&AlertKind::ALL);
        assert_eq!(stored_kinds(&text), AlertKind::ALL);
        assert_eq!(
            stored_kinds("low_balance,of_later"),
            [AlertKind::LowBalance]
        );
        assert_eq!("Low".parse::<AlertKind>(), Err(UnknownAlertKind));
    }

    #[test]
    fn a_delivery_is_as_good_as_its_worst_part() {
        for (waiting, given_up, all, state) in [
            (0, 0, 0, "none"),
            (1, 1, 3, "pending"),
            (0, 1, 3, "failed"),
            (0, 0, 2, "delivered"),
        ] {
            assert_eq!(DeliveryState::of(waiting, given_up, all).as_str(), state);
        }
    }
}
