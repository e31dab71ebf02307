-- What each plugin offered last, so that a host tells what has changed since.
CREATE TABLE offers (
  plugin  TEXT PRIMARY KEY,
  basis   TEXT NOT NULL,              -- JSON: the digest of the program; schema, tier and description of each tool
  changes TEXT NOT NULL,              -- JSON: the last changes, in words
  changed INTEGER NOT NULL            -- when they were seen, in milliseconds since 1970; 0 for never
) STRICT;
