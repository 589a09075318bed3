-- The ledger. Amounts are whole micro-credits, times Unix milliseconds. Inside, rows refer to each
-- other by small integers; the texts callers know (`wal_…`, `key_…`) stand once.

CREATE TABLE wallets (
    n             INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    name          TEXT    NOT NULL UNIQUE,
    status        TEXT    NOT NULL CHECK (status IN ('active', 'disabled')),
    balance       INTEGER NOT NULL DEFAULT 0 CHECK (balance >= 0),
    gift_balance  INTEGER NOT NULL DEFAULT 0 CHECK (gift_balance >= 0),
    credit_limit  INTEGER NOT NULL DEFAULT 0 CHECK (credit_limit >= 0),
    credit_used   INTEGER NOT NULL DEFAULT 0 CHECK (credit_used >= 0),
    frozen        INTEGER NOT NULL DEFAULT 0 CHECK (frozen >= 0),
    -- The number of the last entry, and of all holds ever opened: what `verify` counts against.
    entries       INTEGER NOT NULL DEFAULT 0,
    holds_opened  INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    CHECK (credit_used = 0 OR balance = 0)
) STRICT;

CREATE TABLE keys (
    n                 INTEGER PRIMARY KEY,
    id                TEXT    NOT NULL UNIQUE,
    wallet            INTEGER NOT NULL REFERENCES wallets (n),
    name              TEXT,
    digest            BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    shown_prefix      TEXT    NOT NULL,
    enabled           INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    expires_at        INTEGER,
    spend_limit       INTEGER CHECK (spend_limit >= 0),
    rpm_limit         INTEGER CHECK (rpm_limit BETWEEN 0 AND 4294967295),
    tpm_limit         INTEGER CHECK (tpm_limit BETWEEN 0 AND 4294967295),
    concurrency_limit INTEGER CHECK (concurrency_limit BETWEEN 0 AND 4294967295),
    usage             INTEGER NOT NULL DEFAULT 0 CHECK (usage >= 0),
    frozen            INTEGER NOT NULL DEFAULT 0 CHECK (frozen >= 0),
    open_holds        INTEGER NOT NULL DEFAULT 0 CHECK (open_holds BETWEEN 0 AND 4294967295),
    -- When each bucket is full again, in Unix nanoseconds.
    rpm_state         INTEGER NOT NULL DEFAULT 0,
    tpm_state         INTEGER NOT NULL DEFAULT 0,
    created_at        INTEGER NOT NULL
) STRICT;

CREATE INDEX keys_of_wallet ON keys (wallet);

-- One row for each start of the server; a hold's id begins with the epoch that opened it.
CREATE TABLE epochs (
    epoch      INTEGER PRIMARY KEY,
    started_at INTEGER NOT NULL
) STRICT;

-- Open holds only. Holds and entries name wallet and key without a foreign key: their one writer
-- has read both rows in the same transaction, and the check would cost each call two lookups.
CREATE TABLE holds (
    id         INTEGER PRIMARY KEY,
    wallet     INTEGER NOT NULL,
    key        INTEGER NOT NULL,
    amount     INTEGER NOT NULL CHECK (amount >= 0),
    tokens     INTEGER NOT NULL CHECK (tokens >= 0),
    counts     INTEGER NOT NULL CHECK (counts IN (0, 1)),
    request_id TEXT    NOT NULL,
    opened_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE price_versions (
    id         INTEGER PRIMARY KEY,
    model      TEXT    NOT NULL,
    card       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (model, card)
) STRICT;

-- Every change of a wallet's amounts, and every end of a hold. The number `n` only keeps inserts at
-- the table's end; an entry's name is (wallet, seq), without a gap from 1.
CREATE TABLE entries (
    n             INTEGER PRIMARY KEY,
    wallet        INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    -- The hold this entry ends: at most one entry does.
    closes        INTEGER,
    key           INTEGER,
    held          INTEGER,
    charge        INTEGER NOT NULL CHECK (charge >= 0),
    balance_delta INTEGER NOT NULL,
    gift_delta    INTEGER NOT NULL,
    credit_delta  INTEGER NOT NULL,
    opened_at     INTEGER,
    request_id    TEXT,
    -- What was used, in JSON, and the prices it was charged at.
    meter         TEXT,
    price_version INTEGER,
    basis         TEXT    CHECK (basis IN ('reported', 'counted')),
    note          TEXT,
    -- Written out: a list (IN) would be built as a table of its own for each entry.
    CHECK (CASE WHEN closes IS NOT NULL THEN kind = 'settled' OR kind = 'released' OR kind = 'abandoned'
           ELSE kind = 'top_up' OR kind = 'gift' OR kind = 'credit_limit' OR kind = 'status' END)
) STRICT;

CREATE UNIQUE INDEX entries_in_order ON entries (wallet, seq);
CREATE UNIQUE INDEX entries_closing ON entries (closes) WHERE closes IS NOT NULL;

CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER price_versions_are_not_changed BEFORE UPDATE ON price_versions
BEGIN SELECT RAISE(ABORT, 'price versions are kept as they are'); END;
CREATE TRIGGER price_versions_are_not_deleted BEFORE DELETE ON price_versions
BEGIN SELECT RAISE(ABORT, 'price versions are kept as they are'); END;
