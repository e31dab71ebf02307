-- Whether a token has ended for good, whatever the clock says.
ALTER TABLE revoked_tokens ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
