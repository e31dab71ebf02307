-- Grants can be for less than a tool, or for a whole plugin, and can end by themselves.
ALTER TABLE grants RENAME TO old_grants;
DROP INDEX grants_live;

-- One row per standing answer. '' and 0 say that it is not bounded so.
CREATE TABLE grants (
  id         TEXT PRIMARY KEY,
  user       TEXT NOT NULL,
  plugin     TEXT NOT NULL,
  tool       TEXT NOT NULL DEFAULT '',
  path       TEXT NOT NULL DEFAULT '',    -- absolute and clean: that, and what is below
  command    TEXT NOT NULL DEFAULT '',
  session    TEXT NOT NULL DEFAULT '',
  expires    INTEGER NOT NULL DEFAULT 0,
  max_uses   INTEGER NOT NULL DEFAULT 0,
  created_by TEXT NOT NULL,
  approval   TEXT NOT NULL,               -- the approval that it was given with
  created    INTEGER NOT NULL,
  uses       INTEGER NOT NULL DEFAULT 0,
  last_used  INTEGER NOT NULL DEFAULT 0,
  revoked    INTEGER NOT NULL DEFAULT 0,
  revoked_by TEXT NOT NULL DEFAULT ''
) STRICT;

INSERT INTO grants (id, user, plugin, tool, created_by, approval, created, uses, last_used, revoked, revoked_by)
SELECT id, user, plugin, tool, created_by, approval, created, uses, last_used, revoked, revoked_by FROM old_grants;

DROP TABLE old_grants;

CREATE INDEX grants_user ON grants (user) WHERE revoked = 0;
