-- Tasks: work that outlives the call that asked for it. An unfinished one has a next action time, which is
-- also the end of the claim on it while somebody is at it; a finished one has none.
CREATE TABLE tasks (
    id             TEXT    PRIMARY KEY,
    wallet         INTEGER NOT NULL,
    hold           INTEGER NOT NULL UNIQUE,
    protocol       TEXT    NOT NULL,
    model          TEXT    NOT NULL,
    price_version  INTEGER NOT NULL,
    -- What is held for, in JSON.
    bound          TEXT    NOT NULL,
    -- What the protocol wants to know again.
    memo           TEXT,
    callback_url   TEXT,
    -- Where it runs; unknown until the upstream has accepted it.
    channel        TEXT,
    upstream_model TEXT,
    upstream_id    TEXT,
    -- What the upstream has delivered, while its media are copied.
    delivery       TEXT,
    -- The protocol's word for how it stands.
    status         TEXT    NOT NULL,
    progress       INTEGER,
    -- The very bytes that look-ups and the callback show.
    snapshot       BLOB    NOT NULL,
    polls          INTEGER NOT NULL DEFAULT 0,
    missing        INTEGER NOT NULL DEFAULT 0,
    missing_since  INTEGER,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    next_at        INTEGER,
    -- Grows with each claim; every write names it.
    fence          INTEGER NOT NULL DEFAULT 1,
    -- The start that is at it.
    claimed_by     INTEGER,
    ended_at       INTEGER,
    -- Its owner has removed it from view.
    hidden_at      INTEGER,
    CHECK ((next_at IS NULL) = (ended_at IS NOT NULL)),
    CHECK (hidden_at IS NULL OR ended_at IS NOT NULL)
) STRICT;

CREATE INDEX tasks_due ON tasks (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX tasks_of_wallet ON tasks (wallet, id);
CREATE INDEX tasks_ended ON tasks (ended_at) WHERE ended_at IS NOT NULL;

-- Callbacks of finished tasks. The row owns its bytes; one that is delivered or given up has no next time.
CREATE TABLE callbacks (
    task       TEXT    PRIMARY KEY,
    wallet     INTEGER NOT NULL,
    url        TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER,
    claimed_by INTEGER,
    outcome    TEXT    CHECK (outcome IN ('delivered', 'given_up')),
    CHECK ((next_at IS NULL) = (outcome IS NOT NULL))
) STRICT;

CREATE INDEX callbacks_due ON callbacks (next_at) WHERE next_at IS NOT NULL;
