-- The ledger, as many nodes share it. Amounts are whole micro-credits, times Unix milliseconds of the
-- database's clock. Every table of the ledger has its wallet in its primary key, so that a distributed
-- PostgreSQL can spread them by wallet. Who changes a wallet, its keys, its holds or its entries holds
-- the lock of the wallet's row.

CREATE TABLE wallets (
    n             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text   NOT NULL UNIQUE,
    name          text   NOT NULL UNIQUE,
    status        text   NOT NULL CHECK (status IN ('active', 'disabled')),
    balance       bigint NOT NULL DEFAULT 0 CHECK (balance >= 0),
    gift_balance  bigint NOT NULL DEFAULT 0 CHECK (gift_balance >= 0),
    credit_limit  bigint NOT NULL DEFAULT 0 CHECK (credit_limit >= 0),
    credit_used   bigint NOT NULL DEFAULT 0 CHECK (credit_used >= 0),
    frozen        bigint NOT NULL DEFAULT 0 CHECK (frozen >= 0),
    -- The number of the last entry, and of all holds ever opened: what `verify` counts against.
    entries       bigint NOT NULL DEFAULT 0,
    holds_opened  bigint NOT NULL DEFAULT 0,
    created_at    bigint NOT NULL,
    CONSTRAINT no_balance_beside_credit CHECK (credit_used = 0 OR balance = 0)
) WITH (fillfactor = 50); -- Changed in place again and again.

CREATE TABLE keys (
    n                 bigint  GENERATED ALWAYS AS IDENTITY,
    id                text    NOT NULL UNIQUE,
    wallet            bigint  NOT NULL REFERENCES wallets (n),
    name              text,
    digest            bytea   NOT NULL UNIQUE CHECK (length(digest) = 32),
    shown_prefix      text    NOT NULL,
    enabled           boolean NOT NULL DEFAULT true,
    expires_at        bigint,
    spend_limit       bigint CHECK (spend_limit >= 0),
    rpm_limit         bigint CHECK (rpm_limit BETWEEN 0 AND 4294967295),
    tpm_limit         bigint CHECK (tpm_limit BETWEEN 0 AND 4294967295),
    concurrency_limit bigint CHECK (concurrency_limit BETWEEN 0 AND 4294967295),
    usage             bigint NOT NULL DEFAULT 0 CHECK (usage >= 0),
    frozen            bigint NOT NULL DEFAULT 0 CHECK (frozen >= 0),
    open_holds        bigint NOT NULL DEFAULT 0 CHECK (open_holds BETWEEN 0 AND 4294967295),
    -- When each bucket is full again, in Unix nanoseconds.
    rpm_state         bigint NOT NULL DEFAULT 0,
    tpm_state         bigint NOT NULL DEFAULT 0,
    created_at        bigint NOT NULL,
    PRIMARY KEY (wallet, n)
) WITH (fillfactor = 50);

-- One row for each start of a node; a hold's id begins with the epoch that opened it.
CREATE TABLE nodes (
    epoch       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text   NOT NULL,
    started_at  bigint NOT NULL,
    lease_until bigint NOT NULL,
    -- When the lease was returned or taken away: from here on the epoch opens no hold.
    closed_at   bigint,
    -- When no hold of the epoch was left.
    swept_at    bigint
);

CREATE INDEX nodes_unswept ON nodes (epoch) WHERE swept_at IS NULL;

-- Open holds only.
CREATE TABLE holds (
    wallet     bigint  NOT NULL,
    id         bigint  NOT NULL,
    key        bigint  NOT NULL,
    amount     bigint  NOT NULL CHECK (amount >= 0),
    tokens     bigint  NOT NULL CHECK (tokens >= 0),
    counts     boolean NOT NULL,
    request_id text    NOT NULL,
    opened_at  bigint  NOT NULL,
    PRIMARY KEY (wallet, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);

CREATE TABLE price_versions (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model      text   NOT NULL,
    card       text   NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (model, card)
);

-- Every change of a wallet's amounts, and every end of a hold. An entry's name is (wallet, seq), without
-- a gap from 1; `n` only orders pages.
CREATE TABLE entries (
    n             bigint GENERATED ALWAYS AS IDENTITY,
    wallet        bigint NOT NULL,
    seq           bigint NOT NULL,
    kind          text   NOT NULL,
    at            bigint NOT NULL,
    -- The hold this entry ends: at most one entry does.
    closes        bigint,
    key           bigint,
    held          bigint,
    charge        bigint NOT NULL CHECK (charge >= 0),
    balance_delta bigint NOT NULL,
    gift_delta    bigint NOT NULL,
    credit_delta  bigint NOT NULL,
    opened_at     bigint,
    request_id    text,
    -- What was used, in JSON, and the prices it was charged at.
    meter         text,
    price_version bigint,
    basis         text CHECK (basis IN ('reported', 'counted')),
    note          text,
    PRIMARY KEY (wallet, seq),
    CHECK (CASE WHEN closes IS NOT NULL THEN kind IN ('settled', 'released', 'abandoned')
           ELSE kind IN ('top_up', 'gift', 'credit_limit', 'status') END)
);

CREATE UNIQUE INDEX entries_closing ON entries (closes, wallet) WHERE closes IS NOT NULL;
CREATE INDEX entries_by_number ON entries (n);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are kept as they are', TG_TABLE_NAME;
END $$;

CREATE TRIGGER entries_are_not_changed BEFORE UPDATE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER price_versions_are_not_changed BEFORE UPDATE OR TRUNCATE ON price_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER price_versions_are_not_deleted BEFORE DELETE ON price_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
