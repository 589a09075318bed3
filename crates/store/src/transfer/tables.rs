//! Lists every table of a store with its columns, for both databases.
//!
//! A migration that adds columns must add them here. A test for each database compares this list with its schema.

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    /// The name in `PostgreSQL` and in messages.
    pub(crate) name: &'static str,
    pub(crate) file: File,
    /// The FROM clause that reads the rows in `SQLite`. The table itself has the alias `t`.
    pub(crate) sqlite_from: &'static str,
    /// The columns, beginning with those of the key.
    pub(crate) columns: &'static [Column],
    /// The number of columns of the key, which determines the order in which rows are read.
    pub(crate) key: usize,
    /// The number of rows that are copied in one transaction. It is lower for large rows, to limit the memory.
    pub(crate) batch_rows: usize,
}

/// One of `SQLite`'s two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    Ledger,
    Journal,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) sqlite: InSqlite,
    pub(crate) postgres: InPostgres,
}

/// The type of a column in `PostgreSQL`. `SQLite` has fewer types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    BigInt,
    Integer,
    SmallInt,
    Boolean,
    Text,
    Bytes,
}

/// How `SQLite` stores a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InSqlite {
    Column,
    /// The column is not stored, but computed when it is read.
    Computed(&'static str),
    /// The column is a number that refers to the journal's table `names`.
    Name,
    /// The column is in `key_states`, which has no row for a key that was never used.
    State(&'static str),
}

/// How `PostgreSQL` stores a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InPostgres {
    Column,
    /// The column is not stored, but computed when it is read.
    Computed(&'static str),
    /// The column is read by this expression.
    ReadAs(&'static str),
}

impl Column {
    const fn of(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            sqlite: InSqlite::Column,
            postgres: InPostgres::Column,
        }
    }

    const fn sqlite(mut self, sqlite: InSqlite) -> Self {
        self.sqlite = sqlite;
        self
    }

    const fn postgres(mut self, postgres: InPostgres) -> Self {
        self.postgres = postgres;
        self
    }
}

const fn int(name: &'static str) -> Column {
    Column::of(name, Kind::BigInt)
}

const fn text(name: &'static str) -> Column {
    Column::of(name, Kind::Text)
}

const fn bytes(name: &'static str) -> Column {
    Column::of(name, Kind::Bytes)
}

const fn truth(name: &'static str) -> Column {
    Column::of(name, Kind::Boolean)
}

/// A text column that `SQLite`'s journal stores in `names`.
const fn named(name: &'static str) -> Column {
    text(name).sqlite(InSqlite::Name)
}

/// A column that `SQLite` stores in `key_states`.
const fn state(name: &'static str, read: &'static str) -> Column {
    int(name).sqlite(InSqlite::State(read))
}

/// The batch size for rows of a few hundred bytes.
const SMALL: usize = 5_000;
/// The batch size for rows with documents or bodies, which may have some hundred kilobytes.
const LARGE: usize = 250;

const fn table(
    name: &'static str,
    sqlite_from: &'static str,
    key: usize,
    columns: &'static [Column],
) -> Table {
    Table {
        name,
        file: File::Ledger,
        sqlite_from,
        columns,
        key,
        batch_rows: SMALL,
    }
}

impl Table {
    /// The name in `SQLite`.
    pub(crate) fn sqlite_name(&self) -> &'static str {
        let mut words = self.sqlite_from.split(' ');
        words.next().unwrap_or(self.name)
    }

    const fn in_journal(mut self) -> Self {
        self.file = File::Journal;
        self
    }

    const fn with_large_rows(mut self) -> Self {
        self.batch_rows = LARGE;
        self
    }

    /// The columns of the key.
    pub(crate) fn key_columns(&self) -> impl Iterator<Item = &'static Column> {
        self.columns.iter().take(self.key)
    }
}

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

/// All tables, ordered so that each refers only to earlier ones.
pub(crate) const TABLES: &[Table] = &[
    NODES,
    WALLETS,
    KEYS,
    table(
        "price_versions",
        "price_versions t",
        1,
        &[int("id"), text("model"), text("card"), int("created_at")],
    ),
    table(
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
    ),
    table(
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
    ),
    ENTRIES,
    table(
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
    ),
    TASKS,
    table(
        "callbacks",
        "callbacks t",
        1,
        &[
            text("task"),
            int("wallet"),
            text("url"),
            bytes("body"),
            int("attempts"),
            int("next_at"),
            int("claimed_by"),
            text("outcome"),
        ],
    )
    .with_large_rows(),
    table(
        "audit",
        "audit t",
        1,
        &[
            int("n"),
            int("at"),
            text("actor"),
            text("actor_name"),
            text("role"),
            text("action"),
            text("target"),
            text("before"),
            text("after"),
            text("request_id"),
        ],
    )
    .with_large_rows(),
    table(
        "admin_tokens",
        "admin_tokens t",
        1,
        &[
            int("n"),
            text("id"),
            text("name"),
            text("role"),
            bytes("digest"),
            text("shown_prefix"),
            int("created_at"),
            int("last_used_at"),
            int("revoked_at"),
        ],
    ),
    table(
        "sign_in_codes",
        "sign_in_codes t",
        1,
        &[
            bytes("digest"),
            text("name"),
            text("role"),
            int("expires_at"),
        ],
    ),
    table(
        "admin_sessions",
        "admin_sessions t",
        1,
        &[
            bytes("digest"),
            bytes("token"),
            text("actor"),
            text("name"),
            text("role"),
            int("expires_at"),
        ],
    ),
    table(
        "catalogs",
        "catalogs t",
        1,
        &[
            int("version"),
            text("document"),
            text("made_by"),
            int("made_at"),
        ],
    )
    .with_large_rows(),
    table(
        "alert_rules",
        "alert_rules t",
        1,
        &[
            int("n"),
            text("id"),
            text("kinds"),
            text("url"),
            text("secret"),
            text("wallet"),
            int("below"),
            int("created_at"),
        ],
    ),
    table(
        "alerts",
        "alerts t",
        1,
        &[
            int("n"),
            text("id"),
            text("kind"),
            text("condition"),
            text("subject"),
            text("wallet"),
            text("message"),
            int("at"),
            int("ended_at"),
        ],
    ),
    table(
        "alert_deliveries",
        "alert_deliveries t",
        1,
        &[
            int("n"),
            int("alert"),
            int("rule"),
            text("event"),
            int("attempts"),
            int("next_at"),
            int("claimed_by"),
            int("tried_at"),
            text("outcome"),
            text("problem"),
        ],
    ),
    CALLS,
    table(
        "usage_series",
        "usage_series t",
        1,
        &[
            int("n"),
            text("wallet"),
            text("key"),
            text("model"),
            text("channel"),
            text("endpoint"),
        ],
    )
    .in_journal(),
    table(
        "usage_totals",
        "usage_totals t",
        3,
        &[
            Column::of("grain", Kind::SmallInt),
            int("at"),
            int("series"),
            bytes("totals"),
        ],
    )
    .in_journal(),
    table(
        "usage_uncounted",
        "usage_uncounted t",
        1,
        &[int("before")],
    )
    .in_journal(),
    table(
        "usage_long_steps",
        "usage_long_steps t",
        1,
        &[int("since")],
    )
    .in_journal(),
];

/// Starts of servers: epochs of a file, or nodes of a cluster. None of them runs at the destination, so each is copied
/// as closed. A start with open holds is copied as not yet swept.
const NODES: Table = table(
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

const WALLETS: Table = table(
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

const KEYS: Table = table(
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

const ENTRIES: Table = table(
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

const TASKS: Table = table(
    "tasks",
    "tasks t",
    1,
    &[
        text("id"),
        int("wallet"),
        // The key of a task comes from its open hold, or from the entry that closed the hold.
        int("key").sqlite(InSqlite::Computed(
            "coalesce((SELECT h.key FROM holds h WHERE h.id = t.hold),
                      (SELECT e.key FROM entries e WHERE e.closes = t.hold), 0)",
        )),
        int("hold"),
        text("protocol"),
        text("model"),
        int("price_version"),
        text("bound"),
        text("memo"),
        text("callback_url"),
        text("channel"),
        text("upstream_model"),
        text("upstream_id"),
        text("delivery"),
        text("status"),
        Column::of("progress", Kind::SmallInt),
        bytes("snapshot"),
        int("polls"),
        int("missing"),
        int("missing_since"),
        int("created_at"),
        int("expires_at"),
        int("next_at"),
        int("fence"),
        int("claimed_by"),
        int("ended_at"),
        int("hidden_at"),
    ],
)
.with_large_rows();

const CALLS: Table = table(
    "calls",
    "calls t",
    1,
    &[
        int("n"),
        int("at"),
        named("wallet"),
        named("key"),
        Column::of("status", Kind::Integer),
        text("request_id"),
        named("model"),
        named("endpoint"),
        named("channel"),
        named("upstream_model"),
        text("code"),
        truth("stream"),
        text("outcome"),
        int("hold"),
        text("meter"),
        int("charge"),
        int("admitted_us"),
        int("queued_us"),
        int("upstream_us"),
        int("first_byte_us"),
        int("total_us"),
        text("dropped_params"),
        text("route_notes"),
        text("request_body"),
        text("response_body"),
        int("cost"),
    ],
)
.in_journal()
.with_large_rows();
