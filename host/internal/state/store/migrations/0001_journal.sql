-- One row per event, never changed. What is not here is in body, as JSON.
CREATE TABLE journal (
  seq  INTEGER PRIMARY KEY, -- without a gap
  call TEXT NOT NULL,
  body TEXT NOT NULL,
  hash BLOB NOT NULL,       -- over the hash of the row before, seq, call and body
  mac  BLOB NOT NULL        -- over seq, call, body and hash
) STRICT;

CREATE INDEX journal_call ON journal (call);

-- One row: where the journal begins and ends.
CREATE TABLE journal_head (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  body TEXT NOT NULL,
  mac  BLOB NOT NULL        -- over body
) STRICT;
