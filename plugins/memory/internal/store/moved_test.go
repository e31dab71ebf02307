package store

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// A file is complete if its log was moved into it between the two reads.
func TestInspectWhenTheLogIsMoved(t *testing.T) {
	path := temp(t)
	s := open(t, path)
	must(t, s.Close())
	s = open(t, path)
	s.put(t, noteOf("note", strings.Repeat("a note that is in the log only ", 10_000)))
	before, err := os.Stat(path)
	must(t, err)
	db, err := connect(path, checkParams)
	must(t, err)
	must(t, s.Close())
	if after, err := os.Stat(path); err != nil || after.Size() <= before.Size() {
		t.Fatalf("the log was not moved into the file: %d bytes, before %d; %v", after.Size(), before.Size(), err)
	}
	must(t, errors.Join(inspect(t.Context(), db, path), db.Close()))
}
