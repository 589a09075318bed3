-- The entries of a wallet form a hash chain, and the wallet keeps the hash of the last one (`chain.rs`).
ALTER TABLE wallets ADD COLUMN head BLOB NOT NULL DEFAULT x'';

-- SQL cannot compute the heads of wallets that have entries already. The program does it right after the
-- migration, in one transaction, and drops this table with it: while it exists, heads are missing.
CREATE TABLE heads_missing (since INTEGER NOT NULL DEFAULT (unixepoch())) STRICT;
