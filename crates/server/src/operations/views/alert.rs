//! Alerts, and the rules of who is told of them.

use ledger::UnixMs;
use serde::Serialize;
use store::{AlertId, AlertRow, LastAttempt, RuleRow, WalletId};
use utoipa::ToSchema;

use crate::operations::alerts::shown_url;
use crate::operations::amount::{Credits, MicroText};

/// Something that is or was wrong.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Alert)]
pub(crate) struct AlertView {
    #[schema(value_type = String, example = "alt_0123456789abcdef")]
    pub(crate) id: AlertId,
    /// `low_balance`, `key_limit`, `channel_down`, `error_rate` or `stuck_closes`.
    #[schema(value_type = String, example = "low_balance")]
    pub(crate) kind: &'static str,
    /// The id of a wallet or key, or the name of a channel; null if it is about the whole gateway.
    #[schema(required)]
    pub(crate) subject: Option<String>,
    /// The wallet that it is about, or whose key.
    #[schema(required, value_type = Option<String>)]
    pub(crate) wallet: Option<WalletId>,
    /// A sentence.
    pub(crate) message: String,
    /// When it began.
    pub(crate) at: i64,
    /// Null while it lasts.
    #[schema(required)]
    pub(crate) ended_at: Option<i64>,
    /// What became of its webhooks: `none`, `pending`, `delivered` or `failed`.
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

/// Who is told of which alerts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AlertRule)]
pub(crate) struct RuleView {
    #[schema(example = "rul_0123456789abcdef")]
    pub(crate) id: String,
    #[schema(value_type = Vec<String>, example = json!(["low_balance"]))]
    pub(crate) kinds: Vec<&'static str>,
    /// Without its path and query for roles below operator, because they may be a secret.
    pub(crate) url: String,
    /// Only alerts about this wallet and its keys; null for all.
    #[schema(required, value_type = Option<String>)]
    pub(crate) wallet: Option<WalletId>,
    #[schema(required)]
    pub(crate) wallet_name: Option<String>,
    /// The balance below which the rule wants to be told.
    #[schema(required)]
    pub(crate) below: Option<Credits>,
    #[schema(required)]
    pub(crate) below_micro: Option<MicroText>,
    pub(crate) created_at: i64,
    /// Its latest delivery that was tried.
    #[schema(required)]
    pub(crate) last_attempt: Option<AttemptView>,
}

/// How a delivery went.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AlertAttempt)]
pub(crate) struct AttemptView {
    pub(crate) at: i64,
    /// Why it failed; null if it was delivered.
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
    /// Without what may be a secret in the address.
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
    /// Signs everything that the rule sends. Shown now and never again.
    pub(crate) secret: String,
}

/// How a test went.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertTest)]
pub(crate) struct RuleTestView {
    pub(crate) delivered: bool,
    /// Why it was not delivered.
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
