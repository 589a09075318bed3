//! The tables of the journal and of its roll-ups.

use super::table::{Column, Kind, Table, bytes, int, named, table, text, truth};

pub(super) const CALLS: Table = table(
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

pub(super) const USAGE_SERIES: Table = table(
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
.in_journal();

pub(super) const USAGE_TOTALS: Table = table(
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
.in_journal();

pub(super) const USAGE_UNCOUNTED: Table =
    table("usage_uncounted", "usage_uncounted t", 1, &[int("before")]).in_journal();

pub(super) const USAGE_LONG_STEPS: Table =
    table("usage_long_steps", "usage_long_steps t", 1, &[int("since")]).in_journal();
