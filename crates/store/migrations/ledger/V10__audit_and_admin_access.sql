-- Who changed what. A change and its row are one transaction, and rows are never changed or deleted.
CREATE TABLE audit (
    n          INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    -- A token (`tok_…`), `config`, `cli`, or `link`.
    actor      TEXT    NOT NULL,
    actor_name TEXT    NOT NULL,
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'support', 'operator', 'owner')),
    action     TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    -- JSON: what the target was before and after. Secrets and digests never stand here.
    before     TEXT,
    after      TEXT,
    request_id TEXT
) STRICT;

CREATE INDEX audit_of_target ON audit (target, n);
CREATE INDEX audit_of_actor ON audit (actor, n);
CREATE INDEX audit_of_action ON audit (action, n);
CREATE INDEX audit_by_time ON audit (at);

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

-- Tokens of the admin API. Revoked ones stay, because the audit names them.
CREATE TABLE admin_tokens (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    name         TEXT    NOT NULL,
    role         TEXT    NOT NULL CHECK (role IN ('viewer', 'support', 'operator', 'owner')),
    digest       BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    shown_prefix TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    -- Written once a minute at most.
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;

-- Links that sign one person in, once.
CREATE TABLE sign_in_codes (
    digest     BLOB    NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'support', 'operator', 'owner')),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Sessions of browsers. Their cookies are kept as digests, so that every node accepts them and none can be
-- read from the database.
CREATE TABLE admin_sessions (
    digest     BLOB    NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    -- The token it was opened with: it ends with that token. NULL if it was opened with a code.
    token      BLOB CHECK (length(token) = 32),
    actor      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'support', 'operator', 'owner')),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
