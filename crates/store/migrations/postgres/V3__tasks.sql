-- Tasks: work that outlives the call that asked for it. An unfinished one has a next action time, which is
-- also the end of the claim on it while some node is at it; a finished one has none.
CREATE TABLE tasks (
    wallet         bigint NOT NULL,
    id             text   NOT NULL,
    key            bigint NOT NULL,
    hold           bigint NOT NULL,
    protocol       text   NOT NULL,
    model          text   NOT NULL,
    price_version  bigint NOT NULL,
    -- What is held for, in JSON.
    bound          text   NOT NULL,
    -- What the protocol wants to know again.
    memo           text,
    callback_url   text,
    -- Where it runs; unknown until the upstream has accepted it.
    channel        text,
    upstream_model text,
    upstream_id    text,
    -- What the upstream has delivered, while its media are copied.
    delivery       text,
    -- The protocol's word for how it stands.
    status         text   NOT NULL,
    progress       smallint,
    -- The very bytes that look-ups and the callback show.
    snapshot       bytea  NOT NULL,
    polls          bigint NOT NULL DEFAULT 0,
    missing        bigint NOT NULL DEFAULT 0,
    missing_since  bigint,
    created_at     bigint NOT NULL,
    expires_at     bigint NOT NULL,
    next_at        bigint,
    -- Grows with each claim; every write names it.
    fence          bigint NOT NULL DEFAULT 1,
    -- The epoch that is at it.
    claimed_by     bigint,
    ended_at       bigint,
    -- Its owner has removed it from view.
    hidden_at      bigint,
    PRIMARY KEY (wallet, id),
    CHECK ((next_at IS NULL) = (ended_at IS NOT NULL)),
    CHECK (hidden_at IS NULL OR ended_at IS NOT NULL)
) WITH (fillfactor = 70); -- Changed in place at each poll.

CREATE UNIQUE INDEX tasks_hold ON tasks (hold, wallet);
CREATE INDEX tasks_by_id ON tasks (id);
CREATE INDEX tasks_due ON tasks (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (ended_at) WHERE ended_at IS NOT NULL;

-- Callbacks of finished tasks. The row owns its bytes; one that is delivered or given up has no next time.
CREATE TABLE callbacks (
    wallet     bigint NOT NULL,
    task       text   NOT NULL,
    url        text   NOT NULL,
    body       bytea  NOT NULL,
    attempts   bigint NOT NULL DEFAULT 0,
    next_at    bigint,
    claimed_by bigint,
    outcome    text   CHECK (outcome IN ('delivered', 'given_up')),
    PRIMARY KEY (wallet, task),
    CHECK ((next_at IS NULL) = (outcome IS NOT NULL))
);

CREATE INDEX callbacks_by_task ON callbacks (task);
CREATE INDEX callbacks_due ON callbacks (next_at) WHERE next_at IS NOT NULL;
