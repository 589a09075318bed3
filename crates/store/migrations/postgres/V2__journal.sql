-- The journal: one row per call, in a table for each day, so that old days are dropped whole. A row's
-- number is its time in milliseconds, shifted by 20 bits, with the writing node in the lowest ones: pages
-- and ages are ranges of it.

CREATE TABLE calls (
    n              bigint  NOT NULL,
    at             bigint  NOT NULL,
    wallet         text,
    key            text,
    status         integer NOT NULL,
    request_id     text    NOT NULL,
    model          text    NOT NULL,
    endpoint       text    NOT NULL,
    channel        text,
    upstream_model text,
    code           text,
    stream         boolean NOT NULL,
    outcome        text,
    hold           bigint,
    meter          text,
    charge         bigint  NOT NULL,
    admitted_us    bigint,
    queued_us      bigint,
    upstream_us    bigint,
    first_byte_us  bigint,
    total_us       bigint  NOT NULL,
    dropped_params text,
    route_notes    text,
    request_body   text,
    response_body  text
) PARTITION BY RANGE (n);

CREATE INDEX calls_in_order ON calls (n);
CREATE INDEX calls_of_wallet ON calls (wallet, n) WHERE wallet IS NOT NULL;
CREATE INDEX calls_of_key ON calls (key, n) WHERE key IS NOT NULL;
CREATE INDEX calls_of_request ON calls (request_id);

-- For rows of days that have no table of their own: clocks that are far off.
CREATE TABLE calls_of_other_days PARTITION OF calls DEFAULT;
