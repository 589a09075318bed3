-- What a call cost at the upstream that answered it, beside what its caller paid. Unknown where the route has no
-- cost card. Of a session, each entry has the cost of its own step.
ALTER TABLE entries ADD COLUMN cost INTEGER CHECK (cost >= 0);
ALTER TABLE entries ADD COLUMN cost_version INTEGER;
-- The cost of a session's steps so far.
ALTER TABLE holds ADD COLUMN cost_booked INTEGER NOT NULL DEFAULT 0 CHECK (cost_booked >= 0);

CREATE TABLE cost_versions (
    id         INTEGER PRIMARY KEY,
    model      TEXT    NOT NULL,
    channel    TEXT    NOT NULL,
    card       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (model, channel, card)
) STRICT;

CREATE TRIGGER cost_versions_are_not_changed BEFORE UPDATE ON cost_versions
BEGIN SELECT RAISE(ABORT, 'cost versions are kept as they are'); END;
CREATE TRIGGER cost_versions_are_not_deleted BEFORE DELETE ON cost_versions
BEGIN SELECT RAISE(ABORT, 'cost versions are kept as they are'); END;

-- Channels and models that operators have set through the admin API, where nodes take them from the store. The highest
-- version is in force.
CREATE TABLE catalogs (
    version  INTEGER PRIMARY KEY,
    document TEXT    NOT NULL,
    made_by  TEXT    NOT NULL,
    made_at  INTEGER NOT NULL
) STRICT;
CREATE TRIGGER catalogs_are_not_changed BEFORE UPDATE ON catalogs
BEGIN SELECT RAISE(ABORT, 'catalogs are kept as they are'); END;
