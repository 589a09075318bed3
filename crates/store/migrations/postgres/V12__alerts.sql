-- The balance below which an alert tells of a wallet. NULL: only rules say so.
ALTER TABLE wallets ADD COLUMN alert_below bigint;
-- The wallets with such a balance, without those that have none.
CREATE INDEX wallets_with_alerts ON wallets (n) WHERE alert_below IS NOT NULL;

-- Who is told of alerts. The secret signs what is sent, so it is kept as it is.
CREATE TABLE alert_rules (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text   NOT NULL UNIQUE,
    -- Words with commas between them.
    kinds      text   NOT NULL,
    url        text   NOT NULL,
    secret     text   NOT NULL,
    -- Only alerts about this wallet and its keys.
    wallet     text,
    -- The balance below which the rule wants to be told.
    below      bigint,
    created_at bigint NOT NULL
);

CREATE TABLE alerts (
    n         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id        text   NOT NULL UNIQUE,
    kind      text   NOT NULL,
    -- What is wrong: the same text as long as it is.
    condition text   NOT NULL,
    -- The wallet, key or channel that it is about.
    subject   text,
    -- The wallet that it is about, or whose key.
    wallet    text,
    message   text   NOT NULL,
    at        bigint NOT NULL,
    ended_at  bigint
);
-- An alert begins once.
CREATE UNIQUE INDEX alerts_open ON alerts (condition) WHERE ended_at IS NULL;
CREATE INDEX alerts_ended ON alerts (ended_at) WHERE ended_at IS NOT NULL;

-- What is to be sent: the beginning and the end of an alert, for each rule that applies.
CREATE TABLE alert_deliveries (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    alert      bigint NOT NULL REFERENCES alerts (n) ON DELETE CASCADE,
    rule       bigint NOT NULL REFERENCES alert_rules (n) ON DELETE CASCADE,
    event      text   NOT NULL CHECK (event IN ('begin', 'end')),
    attempts   bigint NOT NULL DEFAULT 0,
    -- NULL: delivered or given up.
    next_at    bigint,
    claimed_by bigint,
    tried_at   bigint,
    outcome    text CHECK (outcome IN ('delivered', 'given_up')),
    -- Why the last attempt failed.
    problem    text,
    UNIQUE (alert, rule, event)
);
CREATE INDEX alert_deliveries_due ON alert_deliveries (next_at) WHERE next_at IS NOT NULL;
-- What one rule has to deliver.
CREATE INDEX alert_deliveries_due_of_rule ON alert_deliveries (rule, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX alert_deliveries_of_rule ON alert_deliveries (rule, n);

-- What a node sees of itself and its channels. A node that is gone stops refreshing its rows.
CREATE TABLE alert_signals (
    node      bigint NOT NULL,
    condition text   NOT NULL,
    kind      text   NOT NULL,
    subject   text,
    message   text   NOT NULL,
    until     bigint NOT NULL,
    PRIMARY KEY (node, condition)
);

-- The node that looks for alerts, by its epoch, and until when it does. One row.
CREATE TABLE alert_watcher (
    one   boolean PRIMARY KEY DEFAULT TRUE CHECK (one),
    epoch bigint NOT NULL,
    until bigint NOT NULL
);

-- The keys that can come near a limit, without those that have none.
CREATE INDEX keys_with_limits ON keys (n) WHERE spend_limit IS NOT NULL OR window_amount IS NOT NULL;
