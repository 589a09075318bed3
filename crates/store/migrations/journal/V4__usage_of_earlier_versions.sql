-- Totals of grains above 5 are complete for steps that begin at this time or later. Earlier versions did not write these
-- grains. Empty when all are complete.
CREATE TABLE usage_long_steps (since INTEGER NOT NULL) STRICT;
INSERT INTO usage_long_steps
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE EXISTS (SELECT 1 FROM usage_totals);
