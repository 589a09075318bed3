-- The balance below which an alert tells of a wallet. NULL: only rules say so.
ALTER TABLE wallets ADD COLUMN alert_below INTEGER;
-- The wallets with such a balance, without those that have none.
CREATE INDEX wallets_with_alerts ON wallets (n) WHERE alert_below IS NOT NULL;

-- Who is told of alerts. The secret signs what is sent, so it is kept as it is.
CREATE TABLE alert_rules (
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,
    -- Words with commas between them.
    kinds      TEXT    NOT NULL,
    url        TEXT    NOT NULL,
    secret     TEXT    NOT NULL,
    -- Only alerts about this wallet and its keys.
    wallet     TEXT,
    -- The balance below which the rule wants to be told.
    below      INTEGER,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE alerts (
    n         INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT    NOT NULL UNIQUE,
    kind      TEXT    NOT NULL,
    -- What is wrong: the same text as long as it is.
    condition TEXT    NOT NULL,
    -- The wallet, key or channel that it is about.
    subject   TEXT,
    -- The wallet that it is about, or whose key.
    wallet    TEXT,
    message   TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    ended_at  INTEGER
) STRICT;
-- An alert begins once.
CREATE UNIQUE INDEX alerts_open ON alerts (condition) WHERE ended_at IS NULL;
CREATE INDEX alerts_ended ON alerts (ended_at) WHERE ended_at IS NOT NULL;

-- What is to be sent: the beginning and the end of an alert, for each rule that applies.
CREATE TABLE alert_deliveries (
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    alert      INTEGER NOT NULL REFERENCES alerts (n),
    rule       INTEGER NOT NULL REFERENCES alert_rules (n),
    event      TEXT    NOT NULL CHECK (event IN ('begin', 'end')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    -- NULL: delivered or given up.
    next_at    INTEGER,
    claimed_by INTEGER,
    tried_at   INTEGER,
    outcome    TEXT CHECK (outcome IN ('delivered', 'given_up')),
    -- Why the last attempt failed.
    problem    TEXT,
    UNIQUE (alert, rule, event)
) STRICT;
CREATE INDEX alert_deliveries_due ON alert_deliveries (next_at) WHERE next_at IS NOT NULL;
-- What one rule has to deliver.
CREATE INDEX alert_deliveries_due_of_rule ON alert_deliveries (rule, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX alert_deliveries_of_rule ON alert_deliveries (rule, n);

-- What a node sees of itself and its channels. A node that is gone stops refreshing its rows.
CREATE TABLE alert_signals (
    node      INTEGER NOT NULL,
    condition TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    subject   TEXT,
    message   TEXT    NOT NULL,
    until     INTEGER NOT NULL,
    PRIMARY KEY (node, condition)
) STRICT, WITHOUT ROWID;

-- The keys that can come near a limit, without those that have none.
CREATE INDEX keys_with_limits ON keys (n) WHERE spend_limit IS NOT NULL OR window_amount IS NOT NULL;
