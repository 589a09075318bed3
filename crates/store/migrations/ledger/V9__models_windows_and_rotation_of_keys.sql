-- What people set of a key. Lists have a line for each item, so that a search needs no JSON.
ALTER TABLE keys ADD COLUMN models TEXT;
ALTER TABLE keys ADD COLUMN tags TEXT;
ALTER TABLE keys ADD COLUMN window_amount INTEGER CHECK (window_amount >= 0);
ALTER TABLE keys ADD COLUMN window_per TEXT CHECK (window_per IN ('day', 'week', 'month'));
ALTER TABLE keys ADD COLUMN window_zone TEXT;
-- The secret before the last rotation, and until when it works.
ALTER TABLE keys ADD COLUMN old_digest BLOB CHECK (length(old_digest) = 32);
ALTER TABLE keys ADD COLUMN old_secret_until INTEGER;
CREATE UNIQUE INDEX keys_by_old_digest ON keys (old_digest) WHERE old_digest IS NOT NULL;

-- The current period of the window: what the key had been charged when it began, its end, and the number of the
-- wallet's last entry before it. 0 if none has begun.
ALTER TABLE key_states ADD COLUMN window_before INTEGER NOT NULL DEFAULT 0 CHECK (window_before >= 0);
ALTER TABLE key_states ADD COLUMN window_ends_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE key_states ADD COLUMN window_entries INTEGER NOT NULL DEFAULT 0;
-- When the last call was admitted.
ALTER TABLE key_states ADD COLUMN last_used_at INTEGER;
