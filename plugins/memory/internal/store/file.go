package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
)

// Parameters of the connections. synchronous(full) syncs the log at each commit.
// secure_delete overwrites deleted content.
var (
	writerParams = url.Values{
		"mode":    {"rw"},
		"_txlock": {"immediate"},
		"_dqs":    {"0"},
		"_pragma": {
			"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)", "foreign_keys(1)", "trusted_schema(0)",
			"cell_size_check(1)", "secure_delete(1)", "cache_size(-8192)", "journal_size_limit(16777216)",
		},
	}
	readerParams = url.Values{
		"mode":    {"rw"}, // a reader of a write-ahead log needs its locks
		"_dqs":    {"0"},
		"_pragma": {"busy_timeout(10000)", "query_only(1)", "trusted_schema(0)", "cell_size_check(1)", "cache_size(-4096)"},
	}
	checkParams = url.Values{"mode": {"ro"}, "_dqs": {"0"}, "_pragma": {"busy_timeout(10000)", "trusted_schema(0)"}}
)

// busyTimeout is how long the writer waits for another process, as in writerParams.
const busyTimeout = "PRAGMA busy_timeout = 10000"

// maxQuickCheck is the size up to which a file is checked page by page when it is
// opened. The check takes a second for a gigabyte.
const maxQuickCheck = 64 << 20

// smallestPage is the minimum size of a database. SQLite treats a file of a few
// bytes as empty.
const smallestPage = 512

const (
	// pageSize is the page size that SQLite gives new files.
	pageSize = 4096
	// sparePages are reserved for deleting when a file reaches its maximum size.
	sparePages = 256
)

// maxPages returns how many pages a file may have under the file size limit of this
// process, or 0 if there is no limit.
func maxPages() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil || limit.Cur > math.MaxInt64 {
		return 0
	}
	return max(int64(limit.Cur)/pageSize, 1)
}

// applicationID marks a file as notes of this plugin: "tlhm".
const applicationID = 0x746c686d

// connect returns a handle for the file at path. It does not open the file yet.
func connect(path string, params url.Values) (*sql.DB, error) {
	place := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: params.Encode()}
	connector, err := sqlite.NewConnector(place.String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// check creates an empty file if none exists. If one exists, check makes sure that
// it holds notes and is intact, without changing it.
func check(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeFile(path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file", ErrFile)
	}
	switch size := info.Size(); {
	case size == 0:
		if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
			return fmt.Errorf("%w: it is empty, but its log is not", ErrFile)
		}
		return nil
	case size < smallestPage:
		return fmt.Errorf("%w: it is not a database", ErrFile)
	}
	// Do not open the file here: closing it would release the locks that SQLite
	// holds on it in this process if a connection is open.
	db, err := connect(path, checkParams)
	if err != nil {
		return err
	}
	return errors.Join(inspect(ctx, db, path), db.Close())
}

// makeFile creates an empty file durably.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(filepath.Dir(path)))
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// inspect checks that the file belongs to this plugin and is intact.
func inspect(ctx context.Context, db *sql.DB, path string) error {
	var id, pages, pageSize int64
	var version, tables int
	for _, q := range []struct {
		query string
		value any
	}{
		{"PRAGMA application_id", &id},
		{"PRAGMA user_version", &version},
		{"SELECT count(*) FROM sqlite_schema", &tables},
		{"PRAGMA page_count", &pages},
		{"PRAGMA page_size", &pageSize},
	} {
		if err := db.QueryRowContext(ctx, q.query).Scan(q.value); err != nil {
			return err
		}
	}
	fresh := id == 0 && version == 0 && tables == 0 // its creator was killed
	if id != applicationID && !fresh {
		return fmt.Errorf("%w: it is a database of another program", ErrFile)
	}
	names, err := steps(migrations)
	if err != nil {
		return err
	}
	if err := known(version, names); err != nil {
		return err
	}
	// The last process that closes the file moves the log into it. So look at the
	// log first and at the current size afterwards.
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if size := info.Size(); size < pages*pageSize {
			return fmt.Errorf("%w: it has %d bytes, expected %d", ErrFile, size, pages*pageSize)
		}
	}
	if pages*pageSize > maxQuickCheck {
		return nil
	}
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: it is damaged: %s", ErrFile, verdict)
	}
	return nil
}

// Each file is one migration, NNNN_what.sql, numbered from 1 without a gap. A
// released migration never changes; add another one.
//
//go:embed migrations/*.sql
var migrations embed.FS

// steps returns the names of all migrations, in order.
func steps(migrations fs.FS) ([]string, error) { return fs.Glob(migrations, "migrations/*.sql") }

// migrate applies the migrations that the file lacks, all or none.
func migrate(ctx context.Context, db *sql.DB, user string, migrations fs.FS) error {
	names, err := steps(migrations)
	if err != nil {
		return err
	}
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil || version == len(names) {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := applySteps(ctx, tx, migrations, names, user); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// known returns an error if a file has more migrations than this version knows.
func known(version int, names []string) error {
	if version > len(names) {
		return fmt.Errorf("%w: its schema has version %d, this version supports %d", ErrNewer, version, len(names))
	}
	return nil
}

func applySteps(ctx context.Context, tx *sql.Tx, migrations fs.FS, names []string, user string) error {
	var version int // read again: another process may have been faster
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if err := known(version, names); err != nil {
		return err
	}
	for _, name := range names[version:] {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if version == 0 {
		if _, err := tx.ExecContext(ctx, "INSERT INTO meta (id, user, rev, since, notes) VALUES (1, ?, 0, 0, 0)", user); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(names)))
	return err
}
