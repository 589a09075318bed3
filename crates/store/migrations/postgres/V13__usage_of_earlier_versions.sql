-- Totals of grains above 5 are complete for steps that begin at this time or later. Earlier versions did not write these
-- grains, and their nodes are stopped before this step. Empty when all are complete.
CREATE TABLE usage_long_steps (since bigint NOT NULL);
INSERT INTO usage_long_steps
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint WHERE EXISTS (SELECT 1 FROM usage_totals);
