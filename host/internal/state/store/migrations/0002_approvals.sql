-- One row per question to a person. Times are milliseconds since 1970, 0 for never.
CREATE TABLE approvals (
  id           TEXT PRIMARY KEY,
  user         TEXT NOT NULL,
  binding      TEXT NOT NULL,    -- which call it is about
  created      INTEGER NOT NULL,
  expires      INTEGER NOT NULL,
  question     TEXT NOT NULL,    -- JSON
  question_sum BLOB NOT NULL,    -- SHA-256 of question
  content      TEXT NOT NULL,    -- JSON: arguments and preview
  content_sum  BLOB NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('open', 'approved', 'rejected', 'expired', 'canceled', 'spent')),
  decided_by   TEXT NOT NULL DEFAULT '',
  via          TEXT NOT NULL DEFAULT '',
  message      TEXT NOT NULL DEFAULT '',
  decided      INTEGER NOT NULL DEFAULT 0,
  spent_by     TEXT NOT NULL DEFAULT '',
  closed       INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX approvals_state ON approvals (state, user);
CREATE INDEX approvals_binding ON approvals (binding) WHERE state IN ('open', 'approved');
CREATE INDEX approvals_closed ON approvals (closed) WHERE closed > 0;

-- What was asked never changes; only the answer does.
CREATE TRIGGER approvals_fixed
BEFORE UPDATE OF id, user, binding, created, expires, question, question_sum, content, content_sum ON approvals
BEGIN
  SELECT RAISE(ABORT, 'what was asked cannot be changed');
END;

-- One row per standing answer.
CREATE TABLE grants (
  id         TEXT PRIMARY KEY,
  user       TEXT NOT NULL,
  plugin     TEXT NOT NULL,
  tool       TEXT NOT NULL,
  scope      TEXT NOT NULL CHECK (scope IN ('always')),
  created_by TEXT NOT NULL,
  approval   TEXT NOT NULL,      -- the approval that it was given with
  created    INTEGER NOT NULL,
  uses       INTEGER NOT NULL DEFAULT 0,
  last_used  INTEGER NOT NULL DEFAULT 0,
  revoked    INTEGER NOT NULL DEFAULT 0,
  revoked_by TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE UNIQUE INDEX grants_live ON grants (user, plugin, tool) WHERE revoked = 0;
