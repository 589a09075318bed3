//! Changes alert rules, each in a transaction of its own.

use ledger::{Micro, UnixMs};

use super::audit::audit;
use super::change_lock::ChangeError;
use crate::books::{NewAuditRow, checked_rule, no_rule, no_wallet_of_rule};
use crate::postgres::alerts::lookups::{RULES, rule_row};
use crate::postgres::connection::ledger_connection::Session;
use crate::queue::command::RuleChange;
use crate::records::alerts::{NewRule, RuleRow, kinds_text};
use crate::records::audit::Actor;
use crate::records::ids::RuleId;

pub(super) async fn change_rule(
    session: &Session,
    change: &RuleChange,
    now: UnixMs,
    actor: &Actor,
) -> Result<RuleRow, ChangeError> {
    match change {
        RuleChange::Create { id, new } => {
            create_rule(session, *id, new, now).await?;
            audit(session, &NewAuditRow::rule_created(*id, new), now, actor).await?;
            find_rule(session, *id).await
        }
        RuleChange::Remove(id) => {
            let row = find_rule(session, *id).await?;
            // Also deletes the rule's deliveries.
            let delete = "DELETE FROM alert_rules WHERE id = $1";
            let gone = session.client.execute(delete, &[&id.to_string()]).await?;
            if gone == 0 {
                return Err(no_rule(*id).into());
            }
            audit(session, &NewAuditRow::rule_removed(&row), now, actor).await?;
            Ok(row)
        }
    }
}

async fn create_rule(
    session: &Session,
    id: RuleId,
    new: &NewRule,
    now: UnixMs,
) -> Result<(), ChangeError> {
    let client = &session.client;
    let others: i64 = client
        .query_one("SELECT count(*) FROM alert_rules", &[])
        .await?
        .try_get(0)?;
    checked_rule(new, usize::try_from(others).unwrap_or(usize::MAX))?;
    let wallet = new.wallet.map(|wallet| wallet.to_string());
    if let Some(id) = new.wallet {
        let select = "SELECT 1 FROM wallets WHERE id = $1";
        if client.query_opt(select, &[&wallet]).await?.is_none() {
            return Err(no_wallet_of_rule(id).into());
        }
    }
    let insert = "INSERT INTO alert_rules (id, kinds, url, secret, wallet, below, created_at)
                  VALUES ($1, $2, $3, $4, $5, $6, $7)";
    client
        .execute(
            insert,
            &[
                &id.to_string(),
                &kinds_text(&new.kinds),
                &new.webhook.url,
                &new.webhook.secret,
                &wallet,
                &new.below.map(Micro::get),
                &now.get(),
            ],
        )
        .await?;
    Ok(())
}

async fn find_rule(session: &Session, id: RuleId) -> Result<RuleRow, ChangeError> {
    let select = format!("{RULES} WHERE r.id = $1");
    let found = session
        .client
        .query_opt(&select, &[&id.to_string()])
        .await?;
    let row = found.as_ref().map(rule_row).transpose()?;
    row.ok_or_else(|| no_rule(id).into())
}
