-- Who changed what. A change and its row are one transaction, and rows are never changed or deleted.
CREATE TABLE audit (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         bigint NOT NULL,
    -- A token (`tok_…`), `config`, `cli`, or `link`.
    actor      text   NOT NULL,
    actor_name text   NOT NULL,
    role       text   NOT NULL CHECK (role IN ('viewer', 'support', 'operator', 'owner')),
    action     text   NOT NULL,
    target     text   NOT NULL,
    -- JSON: what the target was before and after. Secrets and digests never stand here.
    before     text,
    after      text,
    request_id text
);

CREATE INDEX audit_of_target ON audit (target, n);
CREATE INDEX audit_of_actor ON audit (actor, n);
CREATE INDEX audit_of_action ON audit (action, n);
CREATE INDEX audit_by_time ON audit (at);

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Tokens of the admin API. Revoked ones stay, because the audit names them.
CREATE TABLE admin_tokens (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text   NOT NULL UNIQUE,
    name         text   NOT NULL,
    role         text   NOT NULL CHECK (role IN ('viewer', 'support', 'operator', 'owner')),
    digest       bytea  NOT NULL UNIQUE CHECK (length(digest) = 32),
    shown_prefix text   NOT NULL,
    created_at   bigint NOT NULL,
    -- Written once a minute at most.
    last_used_at bigint,
    revoked_at   bigint
);

-- Links that sign one person in, once.
CREATE TABLE sign_in_codes (
    digest     bytea  NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    name       text   NOT NULL,
    role       text   NOT NULL CHECK (role IN ('viewer', 'support', 'operator', 'owner')),
    expires_at bigint NOT NULL
);

-- Sessions of browsers. Their cookies are kept as digests, so that every node accepts them and none can be
-- read from the database.
CREATE TABLE admin_sessions (
    digest     bytea  NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    -- The token it was opened with: it ends with that token. NULL if it was opened with a code.
    token      bytea CHECK (length(token) = 32),
    actor      text   NOT NULL,
    name       text   NOT NULL,
    role       text   NOT NULL CHECK (role IN ('viewer', 'support', 'operator', 'owner')),
    expires_at bigint NOT NULL
);
