//! Checks changes of alert rules, and composes their audit rows.

use serde_json::{Value, json};

use super::audit::NewAuditRow;
use crate::error::StoreError;
use crate::records::alerts::{ALERT_RULES_MAX, NewRule, RuleRow, kinds_text};
use crate::records::ids::{RuleId, WalletId};

/// Checks a new rule. `others` is the number of existing rules.
pub(crate) fn checked_rule(new: &NewRule, others: usize) -> Result<(), StoreError> {
    let refused = |why: &str| Err(StoreError::Invalid(why.to_owned()));
    if others >= ALERT_RULES_MAX {
        return refused("there are 100 rules, which is the most");
    }
    if new.kinds.is_empty() {
        return refused("a rule has one kind of alert at least");
    }
    if new.wallet.is_some() && !new.kinds.iter().all(|kind| kind.is_about_wallets()) {
        return refused("a rule of one wallet is about low_balance and key_limit alone");
    }
    if new.below.is_some() && !new.kinds.contains(&crate::AlertKind::LowBalance) {
        return refused("an amount needs the kind low_balance");
    }
    Ok(())
}

pub(crate) fn no_rule(id: RuleId) -> StoreError {
    StoreError::NotFound {
        what: "rule",
        id: id.to_string(),
    }
}

pub(crate) fn no_wallet_of_rule(id: WalletId) -> StoreError {
    StoreError::NotFound {
        what: "wallet",
        id: id.to_string(),
    }
}

impl NewAuditRow {
    pub(crate) fn rule_created(id: RuleId, new: &NewRule) -> Self {
        let members = members(&kinds_text(&new.kinds), new.wallet, new.below);
        let mut after = members;
        // The full URL may contain a secret.
        after["url"] = json!(new.shown_url);
        Self::created("alert_rule.create", id.to_string(), &after)
    }

    pub(crate) fn rule_removed(row: &RuleRow) -> Self {
        let before = members(&kinds_text(&row.kinds), row.wallet, row.below);
        Self {
            action: "alert_rule.remove",
            target: row.id.to_string(),
            before: Some(before.to_string()),
            after: None,
        }
    }
}

fn members(kinds: &str, wallet: Option<WalletId>, below: Option<ledger::Micro>) -> Value {
    let mut members = json!({ "kinds": kinds });
    if let Some(wallet) = wallet {
        members["wallet"] = json!(wallet.to_string());
    }
    if let Some(below) = below {
        members["below"] = json!(below.to_string());
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::alerts::{AlertKind, Webhook};

    fn rule(kinds: &[AlertKind], wallet: bool, below: bool) -> NewRule {
        NewRule {
            kinds: kinds.to_vec(),
            webhook: Webhook {
                url: "https://a.example/secret".to_owned(),
                secret: "whsec_1".to_owned(),
            },
            shown_url: "https://a.example/…".to_owned(),
            wallet: wallet.then(WalletId::random),
            below: below.then_some(ledger::Micro::new(5_000_000)),
        }
    }

    #[test]
    fn rules_that_make_no_sense_are_refused() {
        use AlertKind::{ChannelDown, KeyLimit, LowBalance};
        for (new, others, is_fine) in [
            (rule(&[LowBalance, ChannelDown], false, true), 0, true),
            (rule(&[LowBalance, KeyLimit], true, true), 99, true),
            (rule(&[KeyLimit], true, false), 100, false),
            (rule(&[], false, false), 0, false),
            (rule(&[ChannelDown], true, false), 0, false),
            (rule(&[KeyLimit], false, true), 0, false),
        ] {
            assert_eq!(checked_rule(&new, others).is_ok(), is_fine, "{new:?}");
        }
    }

    #[test]
    fn the_audit_tells_neither_the_secret_nor_the_whole_address() {
        let new = rule(&[AlertKind::LowBalance], false, true);
        let audited = NewAuditRow::rule_created(RuleId::random(), &new);
        assert_eq!(
            audited.after.as_deref(),
            Some(r#"{"below":"5","kinds":"low_balance","url":"https://a.example/…"}"#)
        );
    }
}
