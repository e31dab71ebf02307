-- One row per browser that is logged in to the console.
CREATE TABLE logins (
  sha256       TEXT PRIMARY KEY,      -- the digest of the secret in the browser's cookie, in hex
  token        TEXT NOT NULL,         -- the credential that asked for the login: its name,
  token_sha256 TEXT NOT NULL,         -- the digest of its secret,
  user         TEXT NOT NULL,         -- its user
  roles        INTEGER NOT NULL,      -- and its roles then
  created      INTEGER NOT NULL,      -- in milliseconds since 1970
  used         INTEGER NOT NULL       -- when it was last used, to the minute
) STRICT;
