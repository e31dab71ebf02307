-- What a grant was given for, as JSON: the digest of the plugin's program, and schema and tier of each tool. '' is that
-- of earlier grants, which are paused until an approver confirms them.
ALTER TABLE grants ADD COLUMN given TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE grants ADD COLUMN confirmed_by TEXT NOT NULL DEFAULT '';
