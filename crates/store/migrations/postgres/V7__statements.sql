-- Entries that people make have a reference, which is unique within its wallet, and say who made them. A refund names
-- the top-up that it takes back by its number.
ALTER TABLE entries
    ADD COLUMN reference text,
    ADD COLUMN refund_of bigint,
    ADD COLUMN actor     text,
    DROP CONSTRAINT entries_check,
    ADD CONSTRAINT entries_check CHECK (
        CASE WHEN closes IS NOT NULL THEN part_of IS NULL AND kind IN ('settled', 'released', 'abandoned')
        WHEN part_of IS NOT NULL THEN kind = 'part'
        ELSE kind IN ('top_up', 'gift', 'debit', 'refund', 'adjustment', 'credit_limit', 'status') END);

-- Entries of calls are in none of these three.
CREATE UNIQUE INDEX entries_by_reference ON entries (wallet, reference) WHERE reference IS NOT NULL;
CREATE INDEX entries_refunding ON entries (wallet, refund_of) WHERE refund_of IS NOT NULL;
CREATE INDEX entries_by_people ON entries (wallet, seq) WHERE closes IS NULL AND part_of IS NULL;

-- The balance of a wallet after some of its entries: after the last one of each day (UTC), and after every 1,024th.
-- It is computed from the entries and saves statements the way back to the first one.
CREATE TABLE balance_points (
    wallet       bigint NOT NULL,
    seq          bigint NOT NULL,
    -- The latest time of the entries so far.
    posted_at    bigint NOT NULL,
    balance      bigint NOT NULL,
    gift_balance bigint NOT NULL,
    credit_used  bigint NOT NULL,
    -- The charges of all entries so far.
    charged      bigint NOT NULL,
    PRIMARY KEY (wallet, seq)
);

INSERT INTO balance_points (wallet, seq, posted_at, balance, gift_balance, credit_used, charged)
SELECT wallet, seq, posted_at, balance, gift_balance, credit_used, charged FROM (
    SELECT wallet, seq, posted_at,
        sum(balance_delta) OVER so_far AS balance, sum(gift_delta) OVER so_far AS gift_balance,
        sum(credit_delta) OVER so_far AS credit_used, sum(charge) OVER so_far AS charged,
        lead(posted_at) OVER (PARTITION BY wallet ORDER BY seq) AS next_at
    FROM (SELECT *, max(at) OVER (PARTITION BY wallet ORDER BY seq) AS posted_at FROM entries) AS e
    WINDOW so_far AS (PARTITION BY wallet ORDER BY seq)) AS p
WHERE next_at / 86400000 > posted_at / 86400000 OR (next_at IS NOT NULL AND seq % 1024 = 0);

-- The same two sums as of now.
ALTER TABLE wallets
    ADD COLUMN posted_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN charged   bigint NOT NULL DEFAULT 0,
    -- How many entries are in these sums. A node of an earlier version does not set it, so that its entries are refused.
    ADD COLUMN summed    bigint NOT NULL DEFAULT 0;
UPDATE wallets w SET posted_at = sums.posted_at, charged = sums.charged
FROM (SELECT wallet, max(at) AS posted_at, sum(charge) AS charged FROM entries GROUP BY wallet) AS sums
WHERE sums.wallet = w.n;
UPDATE wallets SET summed = entries;
ALTER TABLE wallets ADD CONSTRAINT every_entry_is_summed CHECK (summed = entries);
