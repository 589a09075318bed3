-- A session books what it has used in steps, while its hold stays open. The table is made anew, since its
-- check names the kinds of entries.
ALTER TABLE holds ADD COLUMN booked INTEGER NOT NULL DEFAULT 0 CHECK (booked >= 0);

CREATE TABLE entries_anew (
    n             INTEGER PRIMARY KEY,
    wallet        INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    -- The hold this entry ends: at most one entry does.
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
    -- What was used, in JSON, and the prices it was charged at. Of a session: since its beginning.
    meter         TEXT,
    price_version INTEGER,
    basis         TEXT    CHECK (basis IN ('reported', 'counted')),
    note          TEXT,
    -- Written out: a list (IN) would be built as a table of its own for each entry.
    CHECK (CASE WHEN closes IS NOT NULL THEN part_of IS NULL
                AND (kind = 'settled' OR kind = 'released' OR kind = 'abandoned')
           WHEN part_of IS NOT NULL THEN kind = 'part'
           ELSE kind = 'top_up' OR kind = 'gift' OR kind = 'credit_limit' OR kind = 'status' END)
) STRICT;

INSERT INTO entries_anew (n, wallet, seq, kind, at, closes, key, held, charge, balance_delta, gift_delta, credit_delta,
    opened_at, request_id, meter, price_version, basis, note)
SELECT n, wallet, seq, kind, at, closes, key, held, charge, balance_delta, gift_delta, credit_delta,
    opened_at, request_id, meter, price_version, basis, note FROM entries ORDER BY n;

DROP TABLE entries;
ALTER TABLE entries_anew RENAME TO entries;

CREATE UNIQUE INDEX entries_closing ON entries (closes) WHERE closes IS NOT NULL;
CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
