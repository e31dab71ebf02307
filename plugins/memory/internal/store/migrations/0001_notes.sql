-- One row: the owner of the notes and the number of the last change.
CREATE TABLE meta (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  user  TEXT NOT NULL,
  rev   INTEGER NOT NULL,
  since INTEGER NOT NULL, -- removals up to this change are no longer in gone
  notes INTEGER NOT NULL  -- the number of notes
) STRICT;

CREATE TABLE note (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  note_id  TEXT NOT NULL UNIQUE,
  key      TEXT UNIQUE,
  content  TEXT NOT NULL,
  hash     BLOB NOT NULL,    -- of the content, ignoring case and whitespace
  category INTEGER NOT NULL, -- 0 core, 1 daily, 2 conversation
  tags     TEXT NOT NULL,    -- a JSON list
  pinned   INTEGER NOT NULL,
  source   TEXT NOT NULL,
  session  TEXT NOT NULL,
  seq      INTEGER,
  occurred INTEGER,          -- times are milliseconds since 1970
  expires  INTEGER,
  created  INTEGER NOT NULL,
  updated  INTEGER NOT NULL,
  origin   TEXT NOT NULL,    -- the client that saved it, with its session, as JSON
  rev      INTEGER NOT NULL  -- of its last change
) STRICT;

CREATE INDEX note_rev ON note (rev);
CREATE INDEX note_hash ON note (hash);
CREATE INDEX note_expires ON note (expires) WHERE expires IS NOT NULL;
CREATE INDEX note_category ON note (category, id);

-- The embedders of vectors: vectors of two embedders are not comparable.
CREATE TABLE embedder (
  id        INTEGER PRIMARY KEY,
  name      TEXT NOT NULL UNIQUE,
  dimension INTEGER NOT NULL -- of all its vectors; 0 if there is none yet
) STRICT;

-- The searchable parts of notes.
CREATE TABLE passage (
  id       INTEGER PRIMARY KEY,
  note     INTEGER NOT NULL REFERENCES note (id) ON DELETE CASCADE,
  start    INTEGER NOT NULL, -- byte of the content
  stop     INTEGER NOT NULL,
  hash     BLOB NOT NULL,
  terms    BLOB NOT NULL,
  analyzer INTEGER NOT NULL, -- the version of the terms
  embedder INTEGER REFERENCES embedder (id),
  vector   BLOB              -- 32-bit floats, little-endian
) STRICT;

CREATE INDEX passage_note ON passage (note);
CREATE INDEX passage_hash ON passage (hash);
CREATE INDEX passage_embedder ON passage (embedder);

-- Removed notes, for readers of earlier changes.
CREATE TABLE gone (
  rev  INTEGER NOT NULL,
  note INTEGER NOT NULL
) STRICT;

CREATE INDEX gone_rev ON gone (rev);

-- For phrases and prefixes, and for all words if the index does not fit into memory.
CREATE VIRTUAL TABLE note_text USING fts5(content, content='note', content_rowid='id', tokenize='unicode61 remove_diacritics 2');
INSERT INTO note_text (note_text, rank) VALUES ('secure-delete', 1);

-- The plugin adds new notes to note_text at the end of a transaction, because FTS5
-- would write its index after each statement if a trigger did it.
CREATE TRIGGER note_removed AFTER DELETE ON note BEGIN
  INSERT INTO note_text (note_text, rowid, content) VALUES ('delete', old.id, old.content);
  INSERT INTO gone (rev, note) SELECT rev, old.id FROM meta;
END;

CREATE TRIGGER note_changed AFTER UPDATE OF content ON note BEGIN
  INSERT INTO note_text (note_text, rowid, content) VALUES ('delete', old.id, old.content);
  INSERT INTO note_text (rowid, content) VALUES (new.id, new.content);
END;
