-- The entries of a wallet form a hash chain, and the wallet keeps the hash of the last one (`chain.rs`).
ALTER TABLE wallets ADD COLUMN head bytea NOT NULL DEFAULT '';

-- A node of an earlier version does not know the chain. Its entries are refused instead of breaking it.
CREATE FUNCTION refuse_unchained_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an entry is not chained: a node of an earlier version still runs';
END $$;
CREATE TRIGGER entries_are_chained BEFORE UPDATE ON wallets
    FOR EACH ROW WHEN (NEW.entries <> OLD.entries AND NEW.head = OLD.head)
    EXECUTE FUNCTION refuse_unchained_entry();

-- SQL cannot compute the heads of wallets that have entries already. The program does it right after the
-- migration, in one transaction, and drops this table with it: while it exists, heads are missing.
CREATE TABLE heads_missing (since timestamptz NOT NULL DEFAULT now());
