-- What a call cost at the upstream that answered it, beside what its caller paid. Unknown where the route has no
-- cost card. Of a session, each entry has the cost of its own step.
ALTER TABLE entries ADD COLUMN cost bigint CHECK (cost >= 0);
ALTER TABLE entries ADD COLUMN cost_version bigint;
-- The cost of a session's steps so far.
ALTER TABLE holds ADD COLUMN cost_booked bigint NOT NULL DEFAULT 0 CHECK (cost_booked >= 0);

CREATE TABLE cost_versions (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model      text   NOT NULL,
    channel    text   NOT NULL,
    card       text   NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (model, channel, card)
);

CREATE TRIGGER cost_versions_are_not_changed BEFORE UPDATE OR TRUNCATE ON cost_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER cost_versions_are_not_deleted BEFORE DELETE ON cost_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Channels and models that operators have set through the admin API, where nodes take them from the store. The highest
-- version is in force.
CREATE TABLE catalogs (
    version  bigint PRIMARY KEY,
    document text   NOT NULL,
    made_by  text   NOT NULL,
    made_at  bigint NOT NULL
);
CREATE TRIGGER catalogs_are_not_changed BEFORE UPDATE OR TRUNCATE ON catalogs
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
