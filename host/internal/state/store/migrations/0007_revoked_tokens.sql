-- Tokens that were taken back, whatever the configuration says.
CREATE TABLE revoked_tokens (
  sha256  TEXT PRIMARY KEY,           -- the digest of the secret, in hex
  name    TEXT NOT NULL,              -- what the token was called
  revoked INTEGER NOT NULL            -- when it stops to count, in milliseconds since 1970
) STRICT;
