-- What calls change of a key, apart from what it is: the rows of keys in use stand close together, so that a
-- batch of calls writes few pages however many keys there are. A key that was never used has no row.
CREATE TABLE key_states (
    key        INTEGER PRIMARY KEY,
    usage      INTEGER NOT NULL CHECK (usage >= 0),
    frozen     INTEGER NOT NULL CHECK (frozen >= 0),
    open_holds INTEGER NOT NULL CHECK (open_holds BETWEEN 0 AND 4294967295),
    -- When each bucket is full again, in Unix nanoseconds.
    rpm_state  INTEGER NOT NULL,
    tpm_state  INTEGER NOT NULL
) STRICT;

INSERT INTO key_states (key, usage, frozen, open_holds, rpm_state, tpm_state)
SELECT n, usage, frozen, open_holds, rpm_state, tpm_state FROM keys
WHERE usage <> 0 OR frozen <> 0 OR open_holds <> 0 OR rpm_state <> 0 OR tpm_state <> 0;

ALTER TABLE keys DROP COLUMN usage;
ALTER TABLE keys DROP COLUMN frozen;
ALTER TABLE keys DROP COLUMN open_holds;
ALTER TABLE keys DROP COLUMN rpm_state;
ALTER TABLE keys DROP COLUMN tpm_state;
