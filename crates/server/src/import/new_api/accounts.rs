//! Converts users to wallets, and tokens to keys.

use std::collections::HashSet;

use ledger::{Micro, UnixMs};
use store::{Digest, ForeignRow, ForeignTable, KeyLimits, ModelList};

use super::SYSTEM;
use super::options::Options;
use super::tables::Tables;
use crate::import::exact::Amount;
use crate::import::plan::{ImportPlan, PlannedKey, PlannedSecret, PlannedWallet, SumKind};

/// The maximum quota that the other system can store. A stored quota of this size may stand for a larger one.
const QUOTA_MAX: i64 = 2_147_483_647;
/// The end of the year 9999, in Unix milliseconds. Until then, a key is also accepted without its prefix `sk-`.
const YEAR_9999_END_MS: i64 = 253_402_300_799_000;
/// The number of characters after `sk-` that are stored to show the key.
const SHOWN_CHARS: usize = 4;

pub(super) fn read(tables: &Tables, options: &Options, plan: &mut ImportPlan) {
    let mut users = HashSet::new();
    for row in tables.users.rows() {
        read_user(row, options, plan, &mut users);
    }
    for row in tables.tokens.rows() {
        read_token(row, options, &users, plan);
    }
    report_other_money(tables, options, plan);
    plan.notes.push(
        "Keys are accepted as sk-KEY and as KEY. The form sk-KEY-CHANNEL, by which administrators chose a channel, is not."
            .to_owned(),
    );
}

fn read_user(
    row: ForeignRow<'_>,
    options: &Options,
    plan: &mut ImportPlan,
    users: &mut HashSet<String>,
) {
    plan.wallets_read += 1;
    let id = row.text("id").unwrap_or_default().to_owned();
    let origin = format!("users:{id}");
    match options.quota(row, "aff_quota") {
        Some((0, _)) => {}
        Some((_, amount)) => {
            plan.money_read = plan.money_read + amount;
            let reason = "invitation credit that was not moved to the balance";
            plan.leave(&origin, SumKind::Money, amount, reason);
        }
        None => plan.report(&origin, "its invitation credit cannot be read"),
    }
    let Some((quota, money)) = options.quota(row, "quota") else {
        let reason = "its quota cannot be read";
        plan.leave_out(&origin, SumKind::Money, Amount::ZERO, reason);
        return;
    };
    plan.money_read = plan.money_read + money;
    if row.text("deleted_at").is_some() {
        plan.leave_out(&origin, SumKind::Money, money, "the user is deleted");
        return;
    }
    if quota >= QUOTA_MAX {
        plan.report(
            &origin,
            "the quota is the largest that is stored and may stand for more",
        );
    }
    let Some(balance) = money.down() else {
        plan.leave_out(
            &origin,
            SumKind::Money,
            money,
            "the balance is out of range",
        );
        return;
    };
    let name = row.text("username").or(row.text("display_name"));
    plan.wallets.push(PlannedWallet {
        name: name.unwrap_or(&origin).to_owned(),
        is_enabled: row.number("status") == Some(1),
        money,
        balance,
        credit_limit: Micro::ZERO,
        origin,
    });
    users.insert(id);
}

fn read_token(
    row: ForeignRow<'_>,
    options: &Options,
    users: &HashSet<String>,
    plan: &mut ImportPlan,
) {
    plan.keys_read += 1;
    let origin = format!("tokens:{}", row.text("id").unwrap_or_default());
    let is_unlimited = row.flag("unlimited_quota");
    let remain = if is_unlimited {
        Some((0, Amount::ZERO))
    } else {
        options.quota(row, "remain_quota")
    };
    let is_unreadable = remain.is_none();
    let (remain, left) = remain.unwrap_or_default();
    plan.limits_read = plan.limits_read + left;
    let user = row.text("user_id").unwrap_or_default();
    let key = row.text("key").unwrap_or_default();
    let refusal = if row.text("deleted_at").is_some() {
        Some("the token is deleted")
    } else if !users.contains(user) {
        Some("its user does not exist, is deleted or is left out")
    } else if key.is_empty() || key.contains('-') {
        Some("its key is empty or contains `-`, so it cannot have worked")
    } else {
        None
    };
    if let Some(reason) = refusal {
        plan.leave_out(&origin, SumKind::Limits, left, reason);
        return;
    }
    let mut is_enabled = row.number("status") == Some(1);
    let mut limit_read = left;
    let mut limit = (!is_unlimited).then(|| left.down().unwrap_or(Micro::MAX));
    if remain < 0 {
        plan.leave(
            &origin,
            SumKind::Limits,
            left,
            "the token has used more than its quota; its limit is 0",
        );
        (limit, limit_read) = (Some(Micro::ZERO), Amount::ZERO);
    }
    if is_unreadable {
        let reason = "its quota cannot be read; its limit is 0 and it is created disabled";
        plan.report(&origin, reason);
        is_enabled = false;
    }
    let addresses = row.text("allow_ips").or(row.text("subnet"));
    if addresses.is_some() {
        let reason = "limited to addresses, which keys here cannot be; it is created disabled";
        plan.report(&origin, reason);
        is_enabled = false;
    }
    let models = match models(row, plan) {
        Ok(models) => models,
        Err(reason) => {
            let reason = format!("its models cannot be carried ({reason}); it is created disabled");
            plan.report(&origin, reason);
            is_enabled = false;
            None
        }
    };
    if let Some(group) = row.text("group") {
        plan.report(
            &origin,
            format!("price group {group}: keys here have no groups"),
        );
    }
    let expires = row.number("expired_time");
    if expires.is_none() && row.text("expired_time").is_some() {
        plan.report(&origin, "its expiry cannot be read; it is created disabled");
        is_enabled = false;
    }
    let expires = expires.filter(|seconds| *seconds > 0);
    let secret = format!("sk-{key}");
    let shown = secret.chars().take(3 + SHOWN_CHARS).collect();
    plan.keys.push(PlannedKey {
        wallet: format!("users:{user}"),
        name: row.text("name").map(str::to_owned),
        secret: PlannedSecret::Adopted {
            digest: Digest::of(secret.as_bytes()),
            second: Some((Digest::of(key.as_bytes()), YEAR_9999_END_MS)),
            shown,
        },
        is_enabled,
        limit_read,
        limits: KeyLimits {
            limit,
            models,
            expires_at: expires.map(|seconds| UnixMs::new(seconds.saturating_mul(1000))),
            ..KeyLimits::default()
        },
        origin,
    });
}

fn models(row: ForeignRow<'_>, plan: &ImportPlan) -> Result<Option<ModelList>, String> {
    let names = if row.flag("model_limits_enabled") {
        // A list that is enabled but empty allows no model.
        row.text("model_limits").ok_or("the list is empty")?
    } else {
        match row.text("models") {
            Some(names) => names,
            None => return Ok(None),
        }
    };
    let names = names.split(',').map(str::trim).filter(|it| !it.is_empty());
    let ids = names.map(|name| plan.catalog.known_id(SYSTEM, name));
    let models = ModelList::new(ids).map_err(|error| error.to_string())?;
    // A list that consists of commas allows no model either.
    models
        .map(Some)
        .ok_or_else(|| "the list is empty".to_owned())
}

/// Reports money that is not the balance of a user, and so is not imported.
fn report_other_money(tables: &Tables, options: &Options, plan: &mut ImportPlan) {
    for row in tables.subscriptions.iter().flat_map(ForeignTable::rows) {
        if !matches!(row.text("status"), None | Some("active" | "1")) {
            continue;
        }
        let (id, user) = (row.text("id"), row.text("user_id"));
        let origin = format!("user_subscriptions:{}", id.unwrap_or_default());
        let total = options.quota(row, "amount_total");
        let (Some((_, total)), Some((_, spent))) = (total, options.quota(row, "amount_used"))
        else {
            plan.report(&origin, "a subscription whose amounts cannot be read");
            continue;
        };
        let amount = total - spent;
        if amount == Amount::ZERO {
            continue;
        }
        plan.money_read = plan.money_read + amount;
        let reason = format!("a subscription of user {}", user.unwrap_or_default());
        plan.leave(&origin, SumKind::Money, amount, reason);
    }
    for row in tables.redemptions.iter().flat_map(ForeignTable::rows) {
        if row.number("status") != Some(1) || row.text("deleted_at").is_some() {
            continue;
        }
        let origin = format!("redemptions:{}", row.text("id").unwrap_or_default());
        let Some((quota, amount)) = options.quota(row, "quota") else {
            plan.report(&origin, "a code whose amount cannot be read");
            continue;
        };
        if quota == 0 {
            continue;
        }
        plan.money_read = plan.money_read + amount;
        plan.leave(
            &origin,
            SumKind::Money,
            amount,
            "a code that nobody has redeemed yet",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_quotas_are_carried_and_unreadable_ones_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one-api.db");
        let database = rusqlite::Connection::open(&path).unwrap();
        let rows = "
            CREATE TABLE users (id, username, status, quota);
            CREATE TABLE tokens (id, user_id, key, status, expired_time, remain_quota, unlimited_quota);
            INSERT INTO users VALUES (1, 'ann', 1, 1000000000000000), (2, 'bob', 1, 'much');
            INSERT INTO tokens VALUES
              (1, 1, 'one', 1, -1, 1000000000000000, 0), (2, 1, 'two', 1, -1, 'much', 0),
              (3, 1, 'three', 1, 'soon', 5, 0), (4, 2, 'four', 1, -1, 5, 0);
        ";
        database.execute_batch(rows).unwrap();
        let plan = crate::import::new_api::read(path.to_str().unwrap(), None);
        let plan = plan.await.unwrap();
        let large = Micro::new(2_000_000_000_000_000);
        assert_eq!(plan.wallets.len(), 1);
        assert_eq!(plan.wallets[0].balance, large);
        let keys = plan.keys.iter();
        let keys: Vec<_> = keys.map(|key| (key.is_enabled, key.limits.limit)).collect();
        assert_eq!(
            keys,
            [
                (true, Some(large)),
                (false, Some(Micro::ZERO)),
                (false, Some(Micro::new(10))),
            ]
        );
        for origin in ["users:2", "tokens:2", "tokens:3", "tokens:4"] {
            assert!(
                plan.leftovers.iter().any(|it| it.origin == origin),
                "{origin}"
            );
        }
        let compared = crate::import::compare(None, &plan, "new-api").await;
        assert!(compared.unwrap().outcome.adds_up());
    }
}
