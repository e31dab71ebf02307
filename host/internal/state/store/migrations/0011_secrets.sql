-- Values that users set for secret blocks with for = "user".
CREATE TABLE secrets (
  user   TEXT NOT NULL,
  name   TEXT NOT NULL,
  value  BLOB NOT NULL,               -- sealed with secrets.key; user and name are authenticated
  set_at INTEGER NOT NULL,            -- when it was set, in milliseconds since 1970
  PRIMARY KEY (user, name)
) STRICT, WITHOUT ROWID;
