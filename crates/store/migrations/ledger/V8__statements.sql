-- Entries that people make have a reference, which is unique within its wallet, and say who made them. A refund names
-- the top-up that it takes back by its number. The table is made anew, since its check names the kinds of entries.
CREATE TABLE entries_anew (
    n             INTEGER PRIMARY KEY,
    wallet        INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    -- The hold that this entry ends: at most one entry does.
    closes        INTEGER,
    -- The hold of which this entry is a step.
    part_of       INTEGER,
    key           INTEGER,
    held          INTEGER,
    -- What earlier steps of the same hold have charged.
    booked        INTEGER NOT NULL DEFAULT 0 CHECK (booked >= 0),
    charge        INTEGER NOT NULL CHECK (charge >= 0),
    balance_delta INTEGER NOT NULL,
    gift_delta    INTEGER NOT NULL,
    credit_delta  INTEGER NOT NULL,
    opened_at     INTEGER,
    request_id    TEXT,
    -- What was used, in JSON, and the prices that it was charged at. Of a session: since its beginning.
    meter         TEXT,
    price_version INTEGER,
    basis         TEXT    CHECK (basis IN ('reported', 'counted')),
    note          TEXT,
    reference     TEXT,
    refund_of     INTEGER,
    actor         TEXT,
    -- Written out: a list (IN) would be built as a table of its own for each entry.
    CHECK (CASE WHEN closes IS NOT NULL THEN part_of IS NULL
                AND (kind = 'settled' OR kind = 'released' OR kind = 'abandoned')
           WHEN part_of IS NOT NULL THEN kind = 'part'
           ELSE kind = 'top_up' OR kind = 'gift' OR kind = 'debit' OR kind = 'refund' OR kind = 'adjustment'
                OR kind = 'credit_limit' OR kind = 'status' END)
) STRICT;

INSERT INTO entries_anew (n, wallet, seq, kind, at, closes, part_of, key, held, booked, charge, balance_delta,
    gift_delta, credit_delta, opened_at, request_id, meter, price_version, basis, note)
SELECT n, wallet, seq, kind, at, closes, part_of, key, held, booked, charge, balance_delta,
    gift_delta, credit_delta, opened_at, request_id, meter, price_version, basis, note FROM entries ORDER BY n;

DROP TABLE entries;
ALTER TABLE entries_anew RENAME TO entries;

CREATE UNIQUE INDEX entries_closing ON entries (closes) WHERE closes IS NOT NULL;
CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;

-- Entries of calls are in none of these three.
CREATE UNIQUE INDEX entries_by_reference ON entries (wallet, reference) WHERE reference IS NOT NULL;
CREATE INDEX entries_refunding ON entries (wallet, refund_of) WHERE refund_of IS NOT NULL;
CREATE INDEX entries_by_people ON entries (wallet, seq) WHERE closes IS NULL AND part_of IS NULL;

-- Finds the entries of a wallet. The table is divided into parts of 4,096 rows, so that the entries of a batch fall
-- into few pages of the index, however many wallets they belong to (docs/decisions/036).
CREATE INDEX entries_in_parts ON entries (n >> 12, wallet);

-- The balance of a wallet after some of its entries: after the last one of each day (UTC), and after every 1,024th.
-- It is computed from the entries and saves statements the way back to the first one.
CREATE TABLE balance_points (
    wallet       INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    -- The latest time of the entries so far.
    posted_at    INTEGER NOT NULL,
    balance      INTEGER NOT NULL,
    gift_balance INTEGER NOT NULL,
    credit_used  INTEGER NOT NULL,
    -- The charges of all entries so far.
    charged      INTEGER NOT NULL,
    -- All later entries of the wallet have a larger row number.
    after_n      INTEGER NOT NULL,
    PRIMARY KEY (wallet, seq)
) STRICT, WITHOUT ROWID;

INSERT INTO balance_points (wallet, seq, posted_at, balance, gift_balance, credit_used, charged, after_n)
SELECT wallet, seq, posted_at, balance, gift_balance, credit_used, charged, n FROM (
    SELECT wallet, seq, posted_at, n,
        sum(balance_delta) OVER so_far AS balance, sum(gift_delta) OVER so_far AS gift_balance,
        sum(credit_delta) OVER so_far AS credit_used, sum(charge) OVER so_far AS charged,
        lead(posted_at) OVER (PARTITION BY wallet ORDER BY seq) AS next_at
    FROM (SELECT *, max(at) OVER (PARTITION BY wallet ORDER BY seq) AS posted_at FROM entries)
    WINDOW so_far AS (PARTITION BY wallet ORDER BY seq))
WHERE next_at / 86400000 > posted_at / 86400000 OR (next_at IS NOT NULL AND seq % 1024 = 0);

-- The same two sums as of now.
ALTER TABLE wallets ADD COLUMN posted_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE wallets ADD COLUMN charged INTEGER NOT NULL DEFAULT 0;
UPDATE wallets SET posted_at = sums.posted_at, charged = sums.charged
FROM (SELECT wallet, max(at) AS posted_at, sum(charge) AS charged FROM entries GROUP BY wallet) AS sums
WHERE sums.wallet = wallets.n;
