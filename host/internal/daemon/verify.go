package daemon

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
)

// Database is the name of the database in a state directory.
const Database = store.FileName

// VerifyJournal checks the journal in a state directory that no host holds. It
// changes nothing.
func VerifyJournal(ctx context.Context, stateDir string) (report journal.Report, err error) {
	lock, err := store.Lock(stateDir)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	s, err := store.Open(ctx, store.Options{Dir: stateDir})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return journal.Verify(ctx, journal.Options{Store: s, KeyPath: journalKey(stateDir)})
}

// journalKey is where the key is that proves the journal.
func journalKey(stateDir string) string { return filepath.Join(stateDir, "keys", "journal.key") }
