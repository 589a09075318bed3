-- The endpoint at which a task was created, for reports. Empty for tasks of earlier versions.
ALTER TABLE tasks ADD COLUMN endpoint text NOT NULL DEFAULT '';
