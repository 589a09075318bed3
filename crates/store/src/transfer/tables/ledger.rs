//! The tables of wallets, keys, holds and entries, and of the prices, costs and nodes that these refer to.

use super::table::{InPostgres, InSqlite, Table, bytes, int, state, table, text, truth};

/// Starts of servers: epochs of a file, or nodes of a cluster. None of them runs at the destination, so each is copied
/// as closed. A start with open holds is copied without `swept_at`, because its holds must still be closed.
pub(super) const NODES: Table = table(
    "nodes",
    "epochs t",
    1,
    &[
        int("epoch"),
        int("started_at"),
        text("name").sqlite(InSqlite::Computed("'sqlite'")),
        int("lease_until").sqlite(InSqlite::Computed("t.started_at")),
        int("closed_at")
            .sqlite(InSqlite::Computed("t.started_at"))
            .postgres(InPostgres::ReadAs("coalesce(t.closed_at, t.lease_until)")),
        // The bits of a hold's id above the lowest 40 are its epoch.
        int("swept_at").sqlite(InSqlite::Computed(
            "CASE WHEN EXISTS (SELECT 1 FROM holds h WHERE h.id >> 40 = t.epoch) THEN NULL ELSE t.started_at END",
        )),
    ],
);

pub(super) const WALLETS: Table = table(
    "wallets",
    "wallets t",
    1,
    &[
        int("n"),
        text("id"),
        text("name"),
        text("status"),
        int("balance"),
        int("gift_balance"),
        int("credit_limit"),
        int("credit_used"),
        int("frozen"),
        int("entries"),
        int("holds_opened"),
        int("created_at"),
        int("exposed"),
        bytes("head"),
        int("posted_at"),
        int("charged"),
        int("summed").sqlite(InSqlite::Computed("t.entries")),
        int("alert_below"),
    ],
);

pub(super) const KEYS: Table = table(
    "keys",
    "keys t LEFT JOIN key_states s ON s.key = t.n",
    1,
    &[
        int("n"),
        text("id"),
        int("wallet"),
        text("name"),
        bytes("digest"),
        text("shown_prefix"),
        truth("enabled"),
        int("expires_at"),
        int("spend_limit"),
        int("rpm_limit"),
        int("tpm_limit"),
        int("concurrency_limit"),
        int("created_at"),
        text("models"),
        text("tags"),
        int("window_amount"),
        text("window_per"),
        text("window_zone"),
        bytes("old_digest"),
        int("old_secret_until"),
        state("usage", "coalesce(s.usage, 0)"),
        state("frozen", "coalesce(s.frozen, 0)"),
        state("open_holds", "coalesce(s.open_holds, 0)"),
        state("rpm_state", "coalesce(s.rpm_state, 0)"),
        state("tpm_state", "coalesce(s.tpm_state, 0)"),
        state("window_before", "coalesce(s.window_before, 0)"),
        state("window_ends_at", "coalesce(s.window_ends_at, 0)"),
        state("window_entries", "coalesce(s.window_entries, 0)"),
        state("last_used_at", "s.last_used_at"),
    ],
);

pub(super) const PRICE_VERSIONS: Table = table(
    "price_versions",
    "price_versions t",
    1,
    &[int("id"), text("model"), text("card"), int("created_at")],
);

pub(super) const COST_VERSIONS: Table = table(
    "cost_versions",
    "cost_versions t",
    1,
    &[
        int("id"),
        text("model"),
        text("channel"),
        text("card"),
        int("created_at"),
    ],
);

pub(super) const HOLDS: Table = table(
    "holds",
    "holds t",
    1,
    &[
        int("id"),
        int("wallet"),
        int("key"),
        int("amount"),
        int("tokens"),
        truth("counts"),
        text("request_id"),
        int("opened_at"),
        int("booked"),
        int("exposure"),
        int("cost_booked"),
    ],
);

pub(super) const ENTRIES: Table = table(
    "entries",
    "entries t",
    1,
    &[
        int("n"),
        int("wallet"),
        int("seq"),
        text("kind"),
        int("at"),
        int("closes"),
        int("part_of"),
        int("key"),
        int("held"),
        int("booked"),
        int("charge"),
        int("balance_delta"),
        int("gift_delta"),
        int("credit_delta"),
        int("opened_at"),
        text("request_id"),
        text("meter"),
        int("price_version"),
        text("basis"),
        text("note"),
        text("reference"),
        int("refund_of"),
        text("actor"),
        int("cost"),
        int("cost_version"),
    ],
);

pub(super) const BALANCE_POINTS: Table = table(
    "balance_points",
    "balance_points t",
    2,
    &[
        int("wallet"),
        int("seq"),
        int("posted_at"),
        int("balance"),
        int("gift_balance"),
        int("credit_used"),
        int("charged"),
        int("after_n").postgres(InPostgres::Computed(
            "coalesce((SELECT e.n FROM entries e WHERE e.wallet = t.wallet AND e.seq = t.seq), 0)",
        )),
    ],
);
