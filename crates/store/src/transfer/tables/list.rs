//! Lists all tables in the order in which they are copied.

use super::journal::{CALLS, USAGE_LONG_STEPS, USAGE_SERIES, USAGE_TOTALS, USAGE_UNCOUNTED};
use super::ledger::{
    BALANCE_POINTS, COST_VERSIONS, ENTRIES, HOLDS, KEYS, NODES, PRICE_VERSIONS, WALLETS,
};
use super::operators::{
    ADMIN_SESSIONS, ADMIN_TOKENS, ALERT_DELIVERIES, ALERT_RULES, ALERTS, AUDIT, CATALOGS,
    SIGN_IN_CODES,
};
use super::table::Table;
use super::tasks::{CALLBACKS, TASKS};

/// All tables, ordered so that each refers only to earlier ones.
pub(crate) const TABLES: &[Table] = &[
    NODES,
    WALLETS,
    KEYS,
    PRICE_VERSIONS,
    COST_VERSIONS,
    HOLDS,
    ENTRIES,
    BALANCE_POINTS,
    TASKS,
    CALLBACKS,
    AUDIT,
    ADMIN_TOKENS,
    SIGN_IN_CODES,
    ADMIN_SESSIONS,
    CATALOGS,
    ALERT_RULES,
    ALERTS,
    ALERT_DELIVERIES,
    CALLS,
    USAGE_SERIES,
    USAGE_TOTALS,
    USAGE_UNCOUNTED,
    USAGE_LONG_STEPS,
];

/// Tables that are not copied, because each database or its running nodes create their contents.
#[cfg(test)]
pub(crate) const NOT_COPIED: &[&str] = &[
    "names",
    "refinery_schema_history",
    "alert_signals",
    "alert_watcher",
    // The counts in this table are added to `usage_totals` before a transfer.
    "usage_pending",
];
