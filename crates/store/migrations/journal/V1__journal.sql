-- The journal: one row per call. A row's number is its time in milliseconds, shifted by 20 bits, or one more
-- than the last: rows are appended, pages and ages are ranges of the primary key.

-- What is said again and again (wallets, keys, models, endpoints, channels) by small integers, so that rows
-- and their one index stay small.
CREATE TABLE names (
    n      INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE,
    -- A key's wallet.
    wallet INTEGER
) STRICT;

CREATE TABLE calls (
    n              INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,
    wallet         INTEGER,
    key            INTEGER,
    status         INTEGER NOT NULL,
    request_id     TEXT    NOT NULL,
    model          INTEGER NOT NULL,
    endpoint       INTEGER NOT NULL,
    channel        INTEGER,
    upstream_model INTEGER,
    code           TEXT,
    stream         INTEGER NOT NULL,
    outcome        TEXT,
    meter          TEXT,
    charge         INTEGER NOT NULL,
    admitted_us    INTEGER,
    upstream_us    INTEGER,
    first_byte_us  INTEGER,
    total_us       INTEGER NOT NULL,
    dropped_params TEXT,
    route_notes    TEXT,
    request_body   TEXT,
    response_body  TEXT
) STRICT;

CREATE INDEX calls_of_wallet ON calls (wallet) WHERE wallet IS NOT NULL;
