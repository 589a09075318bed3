//! Views of alerts, and of the rules that send them.

use ledger::UnixMs;
use serde::Serialize;
use store::{AlertId, AlertRow, LastAttempt, RuleRow, WalletId};
use utoipa::ToSchema;

use crate::operations::alerts::shown_url;
use crate::operations::amount::{Credits, MicroText};

/// A problem that exists or existed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Alert)]
pub(crate) struct AlertView {
    #[schema(value_type = String, example = "alt_0123456789abcdef")]
    pub(crate) id: AlertId,
    /// `low_balance`, `key_limit`, `channel_down`, `error_rate` or `stuck_closes`.
    #[schema(value_type = String, example = "low_balance")]
    pub(crate) kind: &'static str,
    /// The id of a wallet or key, or the name of a channel; null if the alert is about the whole gateway.
    #[schema(required)]
    pub(crate) subject: Option<String>,
    /// The wallet that the alert is about, or to which the key belongs.
    #[schema(required, value_type = Option<String>)]
    pub(crate) wallet: Option<WalletId>,
    /// A sentence that describes the problem.
    pub(crate) message: String,
    /// When the problem began.
    pub(crate) at: i64,
    /// Null while the problem lasts.
    #[schema(required)]
    pub(crate) ended_at: Option<i64>,
    /// The state of its deliveries to webhooks: `none`, `pending`, `delivered` or `failed`.
    #[schema(value_type = String, example = "delivered")]
    pub(crate) delivery: &'static str,
}

impl From<AlertRow> for AlertView {
    fn from(row: AlertRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind.as_str(),
            subject: row.subject,
            wallet: row.wallet,
            message: row.message,
            at: row.at.get(),
            ended_at: row.ended_at.map(UnixMs::get),
            delivery: row.delivery.as_str(),
        }
    }
}

/// A rule that sends alerts to a webhook.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AlertRule)]
pub(crate) struct RuleView {
    #[schema(example = "rul_0123456789abcdef")]
    pub(crate) id: String,
    #[schema(value_type = Vec<String>, example = json!(["low_balance"]))]
    pub(crate) kinds: Vec<&'static str>,
    /// For roles below operator the path and the query are left out, because they may contain a secret.
    pub(crate) url: String,
    /// Only alerts about this wallet and its keys; null for all.
    #[schema(required, value_type = Option<String>)]
    pub(crate) wallet: Option<WalletId>,
    #[schema(required)]
    pub(crate) wallet_name: Option<String>,
    /// The balance below which an alert is sent.
    #[schema(required)]
    pub(crate) below: Option<Credits>,
    #[schema(required)]
    pub(crate) below_micro: Option<MicroText>,
    pub(crate) created_at: i64,
    /// The latest attempt of a delivery.
    #[schema(required)]
    pub(crate) last_attempt: Option<AttemptView>,
}

/// The result of a delivery.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AlertAttempt)]
pub(crate) struct AttemptView {
    pub(crate) at: i64,
    /// The reason of a failure; null if the message was delivered.
    #[schema(required)]
    pub(crate) problem: Option<String>,
}

impl From<LastAttempt> for AttemptView {
    fn from(last: LastAttempt) -> Self {
        Self {
            at: last.at.get(),
            problem: last.problem,
        }
    }
}

impl From<RuleRow> for RuleView {
    fn from(row: RuleRow) -> Self {
        Self {
            id: row.id.to_string(),
            kinds: row.kinds.iter().map(|kind| kind.as_str()).collect(),
            url: row.url,
            wallet: row.wallet,
            wallet_name: row.wallet_name,
            below: row.below.map(Credits),
            below_micro: row.below.map(MicroText),
            created_at: row.created_at.get(),
            last_attempt: row.last_attempt.map(AttemptView::from),
        }
    }
}

impl RuleView {
    /// The view without the parts of the URL that may be a secret.
    pub(crate) fn without_secrets(row: RuleRow) -> Self {
        let url = shown_url(&row.url);
        Self {
            url,
            ..Self::from(row)
        }
    }
}

/// A new rule with its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NewAlertRule)]
pub(crate) struct NewRuleView {
    #[serde(flatten)]
    pub(crate) rule: RuleView,
    /// The secret that signs the messages of the rule. It is never shown again.
    pub(crate) secret: String,
}

/// The result of a test message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertTest)]
pub(crate) struct RuleTestView {
    pub(crate) delivered: bool,
    /// The reason why it was not delivered.
    #[schema(required)]
    pub(crate) problem: Option<String>,
}

impl From<Option<String>> for RuleTestView {
    fn from(problem: Option<String>) -> Self {
        Self {
            delivered: problem.is_none(),
            problem,
        }
    }
}
