//! The tables of tasks and their callbacks.

use super::table::{Column, InSqlite, Kind, Table, bytes, int, table, text};

pub(super) const TASKS: Table = table(
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
        text("endpoint"),
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

pub(super) const CALLBACKS: Table = table(
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
.with_large_rows();
