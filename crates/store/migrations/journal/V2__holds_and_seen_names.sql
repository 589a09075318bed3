-- A row names its hold, so that its closing entry is found at once, and how long it waited for the ledger.
ALTER TABLE calls ADD COLUMN hold INTEGER;
ALTER TABLE calls ADD COLUMN queued_us INTEGER;

-- The last day, in days since 1970, on which a row used the name: names go with their rows.
ALTER TABLE names ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
UPDATE names SET seen = unixepoch() / 86400;
