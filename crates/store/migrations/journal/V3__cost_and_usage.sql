-- What the call cost us at its upstream, if that is known.
ALTER TABLE calls ADD COLUMN cost INTEGER;

-- A call is found by its request id. The hour comes first, so that new rows change few pages.
CREATE INDEX calls_of_request ON calls ((n >> 20) / 3600000, request_id);

-- What calls are counted by. A series is kept as long as its totals, for good.
CREATE TABLE usage_series (
    n        INTEGER PRIMARY KEY,
    wallet   TEXT NOT NULL,
    key      TEXT NOT NULL,
    model    TEXT NOT NULL,
    channel  TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    UNIQUE (wallet, key, model, channel, endpoint)
) STRICT;

-- The sums of calls, which are written with them: store/src/usage.
CREATE TABLE usage_totals (
    grain  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    series INTEGER NOT NULL,
    totals BLOB    NOT NULL,
    PRIMARY KEY (grain, at, series)
) STRICT, WITHOUT ROWID;

-- Rows with lower numbers are older than the totals and are still to be counted. Empty when all are.
CREATE TABLE usage_uncounted (before INTEGER NOT NULL) STRICT;
INSERT INTO usage_uncounted SELECT max(n) + 1 FROM calls HAVING max(n) IS NOT NULL;
