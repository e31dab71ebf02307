-- The approvals given so far to a call that several people must approve, as JSON.
ALTER TABLE approvals ADD COLUMN assents TEXT NOT NULL DEFAULT '';
