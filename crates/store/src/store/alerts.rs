//! Operations on alerts, alert rules and deliveries.

use std::time::Duration;

use ledger::{Micro, UnixMs};

use crate::backend::{Backend, on};
use crate::clock;
use crate::error::StoreError;
use crate::queue::command::{AlertCommand, Change, Command, DueWork, EndedWork, Reply, RuleChange};
use crate::records::accounts::KeyRow;
use crate::records::alerts::{
    AlertQuery, AlertRow, AlertSignal, DeliveryReport, DeliveryRow, LowWallet, NewAlert, NewRule,
    RuleRow, ScanPage, Webhook,
};
use crate::records::audit::Actor;
use crate::records::ids::{AlertId, RuleId};
use crate::store::Store;

/// The number of rows that one read of a scan returns.
const SCAN_ROWS: u32 = 1_000;

/// Rules. A change is durable when its method returns, together with its audit row.
impl Store {
    /// Creates a rule.
    pub async fn create_alert_rule(
        &self,
        new: NewRule,
        actor: &Actor,
    ) -> Result<RuleRow, StoreError> {
        let id = RuleId::random();
        self.change_rule(RuleChange::Create { id, new }, actor)
            .await
    }

    /// Removes a rule and all its deliveries.
    pub async fn remove_alert_rule(
        &self,
        id: RuleId,
        actor: &Actor,
    ) -> Result<RuleRow, StoreError> {
        self.change_rule(RuleChange::Remove(id), actor).await
    }

    /// All rules, oldest first. Their number is limited to a hundred.
    pub async fn alert_rules(&self) -> Result<Vec<RuleRow>, StoreError> {
        on!(self, backend => backend.alert_rules().await)
    }

    /// The webhook of a rule.
    pub async fn webhook(&self, rule: RuleId) -> Result<Option<Webhook>, StoreError> {
        on!(self, backend => backend.webhook(rule).await)
    }

    async fn change_rule(&self, change: RuleChange, actor: &Actor) -> Result<RuleRow, StoreError> {
        self.change(|reply| Change::Rule {
            change: Box::new(change),
            now: clock::now(),
            actor: Box::new(actor.clone()),
            reply,
        })
        .await
    }
}

/// Alerts. A change is durable when its method returns.
impl Store {
    /// Alerts, newest first.
    pub async fn alerts(&self, query: AlertQuery) -> Result<Vec<AlertRow>, StoreError> {
        on!(self, backend => backend.alerts(query).await)
    }

    /// Whether this node is the one in the cluster that checks for alerts. It keeps this role for at least `lease`.
    pub async fn lease_alert_checks(&self, lease: Duration) -> Result<bool, StoreError> {
        match &self.backend {
            // No other server uses the file.
            Backend::Sqlite(_) => Ok(true),
            Backend::Postgres(_) => {
                self.alert(|reply| AlertCommand::LeaseChecks(lease, reply))
                    .await
            }
        }
    }

    /// Replaces the signals of this node. All nodes can read them for the duration of `lasting`.
    pub async fn set_alert_signals(
        &self,
        signals: Vec<AlertSignal>,
        lasting: Duration,
        now: UnixMs,
    ) -> Result<(), StoreError> {
        self.alert(|reply| AlertCommand::Signal {
            signals,
            lasting,
            now,
            reply,
        })
        .await
    }

    /// The signals of all nodes, one for each condition.
    pub async fn alert_signals(&self, now: UnixMs) -> Result<Vec<AlertSignal>, StoreError> {
        on!(self, backend => backend.alert_signals(now).await)
    }

    /// Begins an alert, and queues deliveries of its beginning for the rules that it names. `false` if an alert with
    /// the same condition is open.
    pub async fn begin_alert(&self, new: NewAlert, now: UnixMs) -> Result<bool, StoreError> {
        self.alert(|reply| AlertCommand::Begin(Box::new(new), now, reply))
            .await
    }

    /// Ends an alert, and queues deliveries of its end for the rules that its beginning was queued for. `false` if it
    /// has already ended.
    pub async fn end_alert(&self, id: AlertId, now: UnixMs) -> Result<bool, StoreError> {
        self.alert(|reply| AlertCommand::End(id, now, reply)).await
    }

    /// Deletes at most `count_max` alerts that ended longer than `age` ago. Returns how many were deleted.
    pub async fn forget_alerts(
        &self,
        age: Duration,
        count_max: u32,
        now: UnixMs,
    ) -> Result<u64, StoreError> {
        let old = EndedWork {
            age,
            count_max,
            now,
        };
        self.alert(|reply| AlertCommand::Forget(old, reply)).await
    }

    /// Claims due deliveries. No other node gets them within `lease`, and the attempt counts from now on.
    pub async fn claim_deliveries(
        &self,
        count_max: u32,
        lease: Duration,
        now: UnixMs,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        if let Backend::Sqlite(sqlite) = &self.backend
            && !sqlite.has_due_deliveries(now).await?
        {
            return Ok(Vec::new());
        }
        let due = DueWork {
            count_max,
            lease,
            now,
        };
        self.alert(|reply| AlertCommand::Claim(due, reply)).await
    }

    /// Records the outcome of an attempt. `false` if another node has claimed the delivery meanwhile.
    pub async fn report_delivery(&self, report: DeliveryReport) -> Result<bool, StoreError> {
        self.alert(|reply| AlertCommand::ReportDelivery(Box::new(report), reply))
            .await
    }

    async fn alert<T>(
        &self,
        command: impl FnOnce(Reply<T>) -> AlertCommand,
    ) -> Result<T, StoreError> {
        self.ask(|reply| Command::Alert(command(reply))).await
    }
}

/// Queries whose results decide which alerts begin and end.
impl Store {
    /// Active wallets whose balance is below the alert amount that the wallet itself sets, or below `below`.
    pub async fn low_wallets(&self, below: Option<Micro>) -> Result<Vec<LowWallet>, StoreError> {
        let mut found: Vec<LowWallet> = Vec::new();
        loop {
            let page = ScanPage {
                after: found.last().map_or(0, |wallet| wallet.row_number),
                limit: SCAN_ROWS,
            };
            let rows = on!(self, backend => backend.low_wallets(below, page).await)?;
            let is_last = rows.len() < SCAN_ROWS as usize;
            found.extend(rows);
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Enabled keys that have used about 80 % of a limit or more.
    pub async fn keys_near_limits(&self) -> Result<Vec<KeyRow>, StoreError> {
        let now = clock::now();
        let mut found: Vec<KeyRow> = Vec::new();
        let mut after = 0;
        loop {
            let page = ScanPage {
                after,
                limit: SCAN_ROWS,
            };
            let rows = on!(self, backend => backend.keys_near_limits(page).await)?;
            let is_last = rows.len() < SCAN_ROWS as usize;
            after = rows.last().map_or(after, |(row_number, _)| *row_number);
            found.extend(rows.into_iter().map(|(_, row)| row.at(now)));
            if is_last {
                return Ok(found);
            }
        }
    }
}
