-- What the call cost us at its upstream, if that is known.
ALTER TABLE calls ADD COLUMN cost bigint;
