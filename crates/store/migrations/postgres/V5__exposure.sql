-- What the calls of open holds may cost at most beyond what is held for them: admission counts it
-- against the debt limit. A wallet's column is the sum over its open holds.
ALTER TABLE wallets ADD COLUMN exposed bigint NOT NULL DEFAULT 0 CHECK (exposed >= 0);
ALTER TABLE holds ADD COLUMN exposure bigint NOT NULL DEFAULT 0 CHECK (exposure >= 0);
