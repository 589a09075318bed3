//! Converts teams and users to wallets, and virtual keys to keys.

use std::collections::{HashMap, HashSet};

use ledger::{Micro, UnixMs};
use store::{Calendar, Digest, ForeignRow, KeyLimits, KeyWindow, ModelList};

use super::SYSTEM;
use super::allowed_models::allowed_models;
use super::budget::{Budget, period, time};
use super::database::Tables;
use crate::import::exact::Amount;
use crate::import::hex::{self, hex};
use crate::import::plan::{ImportPlan, PlannedKey, PlannedSecret, PlannedWallet, SumKind};

/// The wallet of keys that have neither a team nor a user.
const DEFAULT_WALLET: &str = "wallets:default";
/// The team of keys that `LiteLLM` creates for sessions of its dashboard.
const DASHBOARD_TEAM: &str = "litellm-dashboard";
const MASTER_ALIAS: &str = "litellm_proxy_master_key";
/// The columns with limits: requests per minute, tokens per minute, and parallel requests.
const RATES: [&str; 3] = ["rpm_limit", "tpm_limit", "max_parallel_requests"];
/// The user that only records the spending of the master key.
const DEFAULT_USER: &str = "default_user_id";

/// How to import the budget of a team or user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BudgetsAs {
    /// The unspent part of the budget becomes the balance.
    #[default]
    Balance,
    /// The budget becomes the credit line, and the spent part becomes debt.
    CreditLine,
}

/// Choices of the operator. They are needed because `LiteLLM` has no prepaid money.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Choices {
    pub(crate) budgets_as: BudgetsAs,
    /// The credit line of wallets without a budget.
    pub(crate) credit_line: Micro,
}

/// Reads rows, with the tables that they refer to.
struct Reader<'r> {
    tables: &'r Tables,
    time_zone: &'r str,
    choices: Choices,
    now: UnixMs,
    budgets: HashMap<&'r str, ForeignRow<'r>>,
    teams: HashMap<&'r str, ForeignRow<'r>>,
    users: HashMap<&'r str, ForeignRow<'r>>,
    /// Rotated secrets that are still valid, by the key that replaced them.
    rotated: HashMap<&'r str, (&'r str, i64)>,
}

pub(super) fn read(
    tables: &Tables,
    time_zone: &str,
    choices: Choices,
    now: UnixMs,
    plan: &mut ImportPlan,
) {
    let reader = Reader {
        budgets: by(tables.budgets.rows(), "budget_id"),
        teams: by(tables.teams.rows(), "team_id"),
        users: by(tables.users.rows(), "user_id"),
        rotated: rotated(tables, now),
        tables,
        time_zone,
        choices,
        now,
    };
    let mut made = HashSet::new();
    for row in tables.teams.rows() {
        let id = row.text("team_id").unwrap_or_default();
        if id != DASHBOARD_TEAM {
            reader.wallet(&format!("teams:{id}"), Some(row), plan);
            made.insert(format!("teams:{id}"));
        }
    }
    for row in tables.keys.rows() {
        reader.key(row, &mut made, plan);
    }
    reader.report_shared_rates("team_id", "teams", &reader.teams, plan);
    reader.report_shared_rates("user_id", "users", &reader.users, plan);
    reader.report_other_budgets(&made, plan);
    plan.notes.push(
        match choices.budgets_as {
            BudgetsAs::Balance => {
                "LiteLLM has no prepaid money: what is left of the budgets of teams and users was read as balances."
            }
            BudgetsAs::CreditLine => {
                "LiteLLM has no prepaid money: the budgets of teams and users were read as credit lines, and what they have spent as debt."
            }
        }
        .to_owned(),
    );
    plan.notes.push(
        "Secrets go on working. A key that somebody chose by hand may be weak, and its digest has no salt: rotate such keys."
            .to_owned(),
    );
    plan.notes.push(
        "Callers that send their key as Ocp-Apim-Subscription-Key, x-litellm-api-key or a header of your own must change that."
            .to_owned(),
    );
}

fn by<'r>(
    rows: impl Iterator<Item = ForeignRow<'r>>,
    column: &str,
) -> HashMap<&'r str, ForeignRow<'r>> {
    rows.filter_map(|row| Some((row.text(column)?, row)))
        .collect()
}

fn rotated(tables: &Tables, now: UnixMs) -> HashMap<&str, (&str, i64)> {
    let rows = tables.deprecated.rows();
    let rows = rows.filter_map(|row| {
        let until = time(row.text("revoke_at")?).filter(|until| *until > now.get())?;
        Some((row.text("active_token_id")?, (row.text("token")?, until)))
    });
    rows.collect()
}

impl<'r> Reader<'r> {
    fn budget_of(&self, row: ForeignRow<'r>) -> Budget {
        let shared = row.text("budget_id").and_then(|id| self.budgets.get(id));
        Budget::of(row, shared.copied())
    }

    /// Plans the wallet of a team or user, or the default wallet for keys that have neither.
    fn wallet(&self, origin: &str, row: Option<ForeignRow<'r>>, plan: &mut ImportPlan) {
        plan.wallets_read += 1;
        let budget = row.map(|row| self.budget_of(row)).unwrap_or_default();
        let name = row.and_then(|row| {
            row.text("team_alias")
                .or(row.text("user_alias"))
                .or(row.text("user_email"))
        });
        let id = origin.split_once(':').map_or(origin, |(_, id)| id);
        let mut wallet = PlannedWallet {
            origin: origin.to_owned(),
            name: name
                .unwrap_or(if origin == DEFAULT_WALLET { SYSTEM } else { id })
                .to_owned(),
            is_enabled: !row.is_some_and(|row| row.flag("blocked")),
            money: Amount::ZERO,
            balance: Micro::ZERO,
            credit_limit: Micro::ZERO,
        };
        match (budget.max, self.choices.budgets_as) {
            (None, _) if budget.is_unreadable => {
                let reason = "its budget cannot be read, so it is created disabled";
                plan.report(origin, reason);
                wallet.is_enabled = false;
            }
            (None, _) => {
                wallet.credit_limit = self.choices.credit_line;
                if self.choices.credit_line == Micro::ZERO {
                    plan.report(
                        origin,
                        "it has no budget: top it up, or name a line with --credit-line",
                    );
                }
            }
            (Some(max), BudgetsAs::Balance) => {
                let rest = max - budget.spend;
                plan.money_read = plan.money_read + rest;
                if rest < Amount::ZERO {
                    plan.leave(
                        origin,
                        SumKind::Money,
                        rest,
                        "more was spent than its budget",
                    );
                } else {
                    wallet.money = rest;
                }
            }
            (Some(max), BudgetsAs::CreditLine) => {
                wallet.money = -budget.spend;
                plan.money_read = plan.money_read + wallet.money;
                wallet.credit_limit = max.down().unwrap_or(Micro::MAX);
            }
        }
        if let (Some(_), Some(duration)) = (budget.max, &budget.duration) {
            let reason =
                format!("its budget begins again every {duration}; wallets do not, top it up");
            plan.report(origin, reason);
        }
        match wallet.money.down() {
            Some(balance) => {
                wallet.balance = balance;
                plan.wallets.push(wallet);
            }
            None => plan.leave_out(
                origin,
                SumKind::Money,
                wallet.money,
                "the balance is out of range",
            ),
        }
    }

    fn key(&self, row: ForeignRow<'r>, made: &mut HashSet<String>, plan: &mut ImportPlan) {
        plan.keys_read += 1;
        let token = row.text("token").unwrap_or_default();
        let digest = digest(token);
        let shown = digest.map(|digest| hex(digest.as_bytes().get(..8).unwrap_or_default()));
        let origin = format!("keys:{}", shown.as_deref().unwrap_or("unreadable"));
        let budget = self.budget_of(row);
        let is_total = budget.duration.as_deref().and_then(period).is_none();
        let rest = budget.rest().filter(|_| is_total).unwrap_or_default();
        plan.limits_read = plan.limits_read + rest;
        let digest = match digest {
            Some(digest) if !is_internal(row) => digest,
            found => {
                let reason = match found {
                    Some(_) => "a key of the console or the master key",
                    None => "its token is neither a digest nor a key",
                };
                plan.leave_out(&origin, SumKind::Limits, rest, reason);
                return;
            }
        };
        let (wallet, owner) = self.owner(row);
        if made.insert(wallet.clone()) {
            self.wallet(&wallet, owner, plan);
        }
        let mut key = PlannedKey {
            wallet,
            name: row.text("key_alias").map(str::to_owned),
            secret: PlannedSecret::Adopted {
                digest,
                second: self.second_secret(token),
                shown: row.text("key_name").unwrap_or("sk-...").to_owned(),
            },
            is_enabled: !row.flag("blocked"),
            limit_read: Amount::ZERO,
            limits: KeyLimits {
                expires_at: row.text("expires").and_then(time).map(UnixMs::new),
                ..KeyLimits::default()
            },
            origin,
        };
        if row.text("expires").is_some() && key.limits.expires_at.is_none() {
            disable(&mut key, "its expiry cannot be read", plan);
        }
        if budget.is_unreadable {
            disable(&mut key, "its budget cannot be read", plan);
        }
        self.limit(&mut key, &budget, plan);
        self.rates(&mut key, row, plan);
        self.models(&mut key, row, plan);
        report_other_settings(&key.origin, row, plan);
        plan.keys.push(key);
    }

    /// The wallet of a key: that of its team, or else that of its user, or else the default one.
    fn owner(&self, row: ForeignRow<'r>) -> (String, Option<ForeignRow<'r>>) {
        if let Some(team) = row.text("team_id") {
            return (format!("teams:{team}"), self.teams.get(team).copied());
        }
        match row.text("user_id").filter(|user| *user != DEFAULT_USER) {
            Some(user) => (format!("users:{user}"), self.users.get(user).copied()),
            None => (DEFAULT_WALLET.to_owned(), None),
        }
    }

    /// The secret before a rotation, if it is still valid.
    fn second_secret(&self, token: &str) -> Option<(Digest, i64)> {
        let (old, until) = self.rotated.get(token)?;
        Some((digest(old)?, *until))
    }

    fn limit(&self, key: &mut PlannedKey, budget: &Budget, plan: &mut ImportPlan) {
        let (Some(max), Some(rest)) = (budget.max, budget.rest()) else {
            return;
        };
        let per = budget.duration.as_deref().and_then(period);
        if let Some(per) = per {
            let calendar = Calendar::new(per, self.time_zone).or_else(|_| {
                plan.report(
                    &key.origin,
                    format!("the time zone {} is unknown; UTC is used", self.time_zone),
                );
                Calendar::new(per, "UTC")
            });
            if let (Ok(calendar), Some(amount)) = (calendar, max.down()) {
                key.limits.window = Some(KeyWindow { amount, calendar });
            }
            let is_current = budget.reset_at.is_none_or(|at| at > self.now.get());
            if is_current && budget.spend > Amount::ZERO {
                let reason = format!(
                    "{} of its {} are used in this period; here it begins with 0",
                    budget.spend, max
                );
                plan.report(&key.origin, reason);
            }
            return;
        }
        if let Some(duration) = &budget.duration {
            let reason =
                format!("its budget begins again every {duration}; here it is a limit in all");
            plan.report(&key.origin, reason);
        }
        if rest < Amount::ZERO {
            plan.leave(
                &key.origin,
                SumKind::Limits,
                rest,
                "more was spent than its budget; its limit is 0",
            );
            key.limits.limit = Some(Micro::ZERO);
            return;
        }
        key.limit_read = rest;
        key.limits.limit = Some(rest.down().unwrap_or(Micro::MAX));
    }

    /// Sets the smallest of the key's own limits and those of its team and its user, because `LiteLLM` applies all of
    /// them to a call.
    fn rates(&self, key: &mut PlannedKey, row: ForeignRow<'r>, plan: &mut ImportPlan) {
        let shared = row.text("budget_id").and_then(|id| self.budgets.get(id));
        let team = row.text("team_id").and_then(|id| self.teams.get(id));
        let user = row.text("user_id").and_then(|id| self.users.get(id));
        let mut rate = |column: &str| {
            let own = row.number(column).or_else(|| shared?.number(column));
            let above = [team, user].map(|row| row?.number(column));
            let least = own.into_iter().chain(above.into_iter().flatten()).min()?;
            if least <= 0 {
                let reason = format!("{column} is {least}, so it is created disabled");
                plan.report(&key.origin, reason);
                key.is_enabled = false;
            }
            u32::try_from(least).ok().filter(|rate| *rate > 0)
        };
        let [rpm, tpm, concurrency] = RATES;
        key.limits.rpm = rate(rpm);
        key.limits.tpm = rate(tpm);
        key.limits.concurrency = rate(concurrency);
    }

    /// Sets the models that both the key's list and the list of its team or user allow. If a list cannot be read, or no
    /// model is left, the key is created disabled.
    fn models(&self, key: &mut PlannedKey, row: ForeignRow<'r>, plan: &mut ImportPlan) {
        let names = match allowed_models(row, &self.teams, &self.users) {
            Ok(Some(names)) => names,
            Ok(None) => return,
            Err(reason) => {
                disable(key, reason, plan);
                return;
            }
        };
        let is_unknown =
            |name: &&String| !name.contains('/') && !plan.catalog.ids.contains_key(*name);
        let unknown = names.iter().filter(is_unknown).count();
        if unknown > 0 {
            let reason = format!("{unknown} of its models are not among those that were read");
            plan.report(&key.origin, reason);
        }
        let ids: Vec<String> = names
            .iter()
            .map(|name| plan.catalog.known_id(SYSTEM, name))
            .collect();
        match ModelList::new(&ids) {
            Ok(Some(models)) => key.limits.models = Some(models),
            Ok(None) => {
                plan.report(
                    &key.origin,
                    "it may call no model, so it is created disabled",
                );
                key.is_enabled = false;
            }
            Err(error) => {
                let reason =
                    format!("its models cannot be carried ({error}); it is created disabled");
                plan.report(&key.origin, reason);
                key.is_enabled = false;
            }
        }
    }

    /// Reports rate limits of teams and users that have several keys or none. Wallets have no rate limits, so these
    /// limits cannot be imported exactly.
    fn report_shared_rates(
        &self,
        column: &str,
        table: &str,
        owners: &HashMap<&'r str, ForeignRow<'r>>,
        plan: &mut ImportPlan,
    ) {
        let mut keys: HashMap<&str, usize> = HashMap::new();
        let rows = self.tables.keys.rows().filter(|row| !is_internal(*row));
        for owner in rows.filter_map(|row| row.text(column)) {
            *keys.entry(owner).or_default() += 1;
        }
        for (id, row) in owners {
            let count = keys.get(id).copied().unwrap_or(0);
            for rate in RATES {
                let Some(limit) = row.number(rate) else {
                    continue;
                };
                let reason = match count {
                    // The only key of the owner gets the limit of the owner.
                    1 => continue,
                    0 => format!(
                        "its {rate} of {limit} is not carried: only keys have such limits here, and it has none"
                    ),
                    _ => format!(
                        "its {count} keys shared one {rate} of {limit}; here each of them may use it alone"
                    ),
                };
                plan.report(&format!("{table}:{id}"), reason);
            }
        }
    }

    fn report_other_budgets(&self, made: &HashSet<String>, plan: &mut ImportPlan) {
        for (id, row) in &self.users {
            let origin = format!("users:{id}");
            let budget = self.budget_of(*row);
            if let (false, Some(max)) = (made.contains(&origin), budget.max) {
                plan.report(
                    &origin,
                    format!(
                        "a budget of {max}: the user's keys belong to teams, or there are none"
                    ),
                );
            }
        }
        for row in self.tables.organizations.rows() {
            let budget = self.budget_of(row);
            if let (Some(id), Some(max)) = (row.text("organization_id"), budget.max) {
                plan.report(
                    &format!("organizations:{id}"),
                    format!("a budget of {max}: only wallets and keys have limits here"),
                );
            }
        }
        let customers = self.tables.end_users.rows().len();
        if customers > 0 {
            plan.notes.push(format!(
                "{customers} customers of callers (end users) have no counterpart."
            ));
        }
        plan.leftovers.sort_by(|a, b| a.origin.cmp(&b.origin));
    }
}

/// Whether a key belongs to the dashboard of `LiteLLM` or is the master key. These keys are left out.
fn is_internal(row: ForeignRow<'_>) -> bool {
    row.text("team_id") == Some(DASHBOARD_TEAM) || row.text("key_alias") == Some(MASTER_ALIAS)
}

/// Plans to create the key disabled, because the key might otherwise be allowed more here than in `LiteLLM`.
fn disable(key: &mut PlannedKey, reason: &str, plan: &mut ImportPlan) {
    plan.report(&key.origin, format!("{reason}, so it is created disabled"));
    key.is_enabled = false;
}

/// Reports settings of a key that are not imported.
fn report_other_settings(origin: &str, row: ForeignRow<'_>, plan: &mut ImportPlan) {
    for column in [
        "aliases",
        "model_max_budget",
        "budget_limits",
        "allowed_routes",
        "permissions",
        "tpd_limit",
    ] {
        let is_set = row
            .text(column)
            .is_some_and(|it| !matches!(it, "{}" | "[]" | "null"));
        if is_set {
            plan.report(origin, format!("its {column} is not carried"));
        }
    }
}

/// The digest of a key's secret. Rows contain the digest, except for very old rows, which contain the secret itself.
fn digest(token: &str) -> Option<Digest> {
    if token.starts_with("sk-") {
        return Some(Digest::of(token.as_bytes()));
    }
    hex::digest(token)
}

#[cfg(test)]
mod tests;
