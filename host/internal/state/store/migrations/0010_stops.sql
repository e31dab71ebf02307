-- One row per stop in force: no call that it covers begins. '' says that it covers every user, or
-- every plugin.
CREATE TABLE stops (
  id      TEXT PRIMARY KEY,
  user    TEXT NOT NULL,
  plugin  TEXT NOT NULL,
  reason  TEXT NOT NULL,
  by      TEXT NOT NULL,              -- the admin
  since   INTEGER NOT NULL,           -- in milliseconds since 1970
  UNIQUE (user, plugin)
) STRICT;
