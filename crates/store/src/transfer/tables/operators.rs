//! The tables for operators: the audit, access to the administration, versions of the catalog, and alerts.

use super::table::{Table, bytes, int, table, text};

pub(super) const AUDIT: Table = table(
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
.with_large_rows();

pub(super) const ADMIN_TOKENS: Table = table(
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
);

pub(super) const SIGN_IN_CODES: Table = table(
    "sign_in_codes",
    "sign_in_codes t",
    1,
    &[
        bytes("digest"),
        text("name"),
        text("role"),
        int("expires_at"),
    ],
);

pub(super) const ADMIN_SESSIONS: Table = table(
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
);

pub(super) const CATALOGS: Table = table(
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
.with_large_rows();

pub(super) const ALERT_RULES: Table = table(
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
);

pub(super) const ALERTS: Table = table(
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
);

pub(super) const ALERT_DELIVERIES: Table = table(
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
);
