-- Calls with an idempotency key, for a day.
CREATE TABLE idempotency (
  user    TEXT NOT NULL,
  key     TEXT NOT NULL,
  call    TEXT NOT NULL,
  tool    TEXT NOT NULL,
  hash    TEXT NOT NULL, -- of the canonical arguments
  state   TEXT NOT NULL CHECK (state IN ('admitted', 'started', 'ended')),
  result  BLOB,          -- JSON, when ended
  created INTEGER NOT NULL, -- Unix milliseconds
  PRIMARY KEY (user, key)
) STRICT;

CREATE INDEX idempotency_created ON idempotency (created);
