-- Counts of batches that are not yet in the roll-ups of wallets and keys (usage_totals), encoded by the program. A batch
-- is counted here in its own transaction, and many batches are added to the roll-ups together.
CREATE TABLE usage_pending (n INTEGER PRIMARY KEY, counts BLOB NOT NULL) STRICT;
