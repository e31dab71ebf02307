-- The destination "host:port" that a grant for connections covers.
ALTER TABLE grants ADD COLUMN host TEXT NOT NULL DEFAULT '';
