//! Creates and tests alert rules.

use ledger::Micro;
use store::{
    Actor, AlertKind, AuditAction, NewRule, RuleId, RuleRow, Store, StoreError, WalletId, Webhook,
};
use upstream::{FetchError, Guarded};

/// The prefix of every webhook secret, by which scanners recognise a leaked one.
const PREFIX: &str = "whsec_";

#[derive(Debug)]
pub(crate) struct RuleRequest {
    pub(crate) kinds: Vec<AlertKind>,
    pub(crate) url: String,
    pub(crate) wallet: Option<WalletId>,
    pub(crate) below: Option<Micro>,
}

#[derive(Debug)]
pub(crate) enum RuleError {
    /// The address of the webhook is refused.
    Url(FetchError),
    Store(StoreError),
}

/// Creates a rule. Returns it with its secret, which signs all deliveries and is never shown again.
pub(crate) async fn create(
    store: &Store,
    guarded: &Guarded,
    request: RuleRequest,
    actor: &Actor,
) -> Result<(RuleRow, String), RuleError> {
    let checked = engine::check_webhook(guarded, &request.url).await;
    checked.map_err(RuleError::Url)?;
    let secret: String = engine::ids::fresh(PREFIX);
    let mut kinds = request.kinds;
    kinds.sort_unstable();
    kinds.dedup();
    let new = NewRule {
        kinds,
        shown_url: shown_url(&request.url),
        webhook: Webhook {
            url: request.url,
            secret: secret.clone(),
        },
        wallet: request.wallet,
        below: request.below,
    };
    let created = store.create_alert_rule(new, actor).await;
    Ok((created.map_err(RuleError::Store)?, secret))
}

/// Sends one message that is marked as a test. If it was not accepted, returns the reason.
pub(crate) async fn test(
    store: &Store,
    guarded: &Guarded,
    rule: RuleId,
    actor: &Actor,
) -> Result<Option<String>, StoreError> {
    let webhook = store.webhook(rule).await?;
    let webhook = webhook.ok_or_else(|| StoreError::NotFound {
        what: "rule",
        id: rule.to_string(),
    })?;
    let sent = engine::send_test(guarded, &webhook).await;
    let problem = sent.err().map(|error| error.to_string());
    let action = AuditAction {
        action: "alert_rule.test",
        target: rule.to_string(),
        before: None,
        after: Some(serde_json::json!({ "delivered": problem.is_none() }).to_string()),
    };
    store.note_action(action, actor).await?;
    Ok(problem)
}

/// The URL without the parts that may be secret: its path and query.
pub(crate) fn shown_url(url: &str) -> String {
    match upstream::ExternalUrl::parse_any(url) {
        Ok(url) => format!("{url:?}"),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_an_address_is_not_shown() {
        for (url, shown) in [
            (
                "https://a.example/services/T0/B0?x=1",
                "https://a.example/…",
            ),
            ("http://127.0.0.1:9/x", "http://127.0.0.1:9/…"),
            ("nonsense", ""),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
