-- What people set of a key. Lists have a line for each item, so that a search needs no JSON.
ALTER TABLE keys
    ADD COLUMN models text,
    ADD COLUMN tags text,
    ADD COLUMN window_amount bigint CHECK (window_amount >= 0),
    ADD COLUMN window_per text CHECK (window_per IN ('day', 'week', 'month')),
    ADD COLUMN window_zone text,
    -- The secret before the last rotation, and until when it works.
    ADD COLUMN old_digest bytea CHECK (length(old_digest) = 32),
    ADD COLUMN old_secret_until bigint,
    -- The current period of the window: what the key had been charged when it began, its end, and the number of
    -- the wallet's last entry before it. 0 if none has begun.
    ADD COLUMN window_before bigint NOT NULL DEFAULT 0 CHECK (window_before >= 0),
    ADD COLUMN window_ends_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN window_entries bigint NOT NULL DEFAULT 0,
    -- When the last call was admitted.
    ADD COLUMN last_used_at bigint;

CREATE UNIQUE INDEX keys_by_old_digest ON keys (old_digest) WHERE old_digest IS NOT NULL;
-- Lists of keys are read by number, a page at a time.
CREATE INDEX keys_by_number ON keys (n);
