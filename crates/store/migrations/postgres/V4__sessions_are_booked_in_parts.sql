-- A session books what it has used in steps, while its hold stays open.
ALTER TABLE holds ADD COLUMN booked bigint NOT NULL DEFAULT 0 CHECK (booked >= 0);

ALTER TABLE entries
    -- The hold of which this entry is a step.
    ADD COLUMN part_of bigint,
    -- What earlier steps of the same hold have charged.
    ADD COLUMN booked  bigint NOT NULL DEFAULT 0 CHECK (booked >= 0),
    DROP CONSTRAINT entries_check,
    ADD CONSTRAINT entries_check CHECK (
        CASE WHEN closes IS NOT NULL THEN part_of IS NULL AND kind IN ('settled', 'released', 'abandoned')
        WHEN part_of IS NOT NULL THEN kind = 'part'
        ELSE kind IN ('top_up', 'gift', 'credit_limit', 'status') END);
