-- What the call cost us at its upstream, if that is known.
ALTER TABLE calls ADD COLUMN cost bigint;

-- Finds request ids by their beginning too.
DROP INDEX calls_of_request;
CREATE INDEX calls_of_request ON calls (request_id text_pattern_ops);

-- What calls are counted by. A series is kept as long as its totals, for good.
CREATE TABLE usage_series (
    n        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet   text NOT NULL,
    key      text NOT NULL,
    model    text NOT NULL,
    channel  text NOT NULL,
    endpoint text NOT NULL,
    UNIQUE (wallet, key, model, channel, endpoint)
);

-- The sums of calls, which are written with them: store/src/usage.
CREATE TABLE usage_totals (
    grain  smallint NOT NULL,
    at     bigint   NOT NULL,
    series bigint   NOT NULL,
    totals bytea    NOT NULL,
    PRIMARY KEY (grain, at, series)
) WITH (fillfactor = 70);

-- Rows with lower numbers are older than the totals and are still to be counted. Empty when all are.
CREATE TABLE usage_uncounted (before bigint NOT NULL);
INSERT INTO usage_uncounted SELECT max(n) + 1 FROM calls HAVING max(n) IS NOT NULL;
