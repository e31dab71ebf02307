package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Parameters of connections. WAL lets readers continue during a write; FULL syncs the
// log at each commit, so that what Do acknowledged survives a power failure. Small
// caches keep the host small.
var (
	writerParams = url.Values{
		"mode":    {"rw"},
		"_txlock": {"immediate"},
		"_dqs":    {"0"},
		"_pragma": {
			"busy_timeout(5000)", "journal_mode(wal)", "synchronous(full)", "foreign_keys(1)", "trusted_schema(0)",
			"cell_size_check(1)", "cache_size(-4096)", "journal_size_limit(16777216)",
		},
	}
	readerParams = url.Values{
		"mode":    {"rw"}, // a reader of a log takes part in its locks
		"_dqs":    {"0"},
		"_pragma": {"busy_timeout(5000)", "query_only(1)", "trusted_schema(0)", "cell_size_check(1)", "cache_size(-1024)"},
	}
	checkParams = url.Values{"mode": {"ro"}, "_dqs": {"0"}, "_pragma": {"busy_timeout(5000)", "trusted_schema(0)"}}
)

// Up to these sizes, a database is checked page by page when it is opened, which takes
// about a second for a gigabyte. The limit is higher if the host did not close it.
const (
	maxQuickCheck        = 16 << 20
	maxQuickCheckUnclean = 256 << 20
)

// connect returns a handle to the file at path, without opening it.
func connect(path string, params url.Values) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: params.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return sql.OpenDB(connector), nil
}

// check creates an empty file if there is none. Otherwise it checks, without changing the file,
// that it is a complete database of the host.
func check(ctx context.Context, path string) error {
	size, err := makeFile(path)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if size == 0 {
		if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
			return explain(path, fmt.Errorf("%w: it is empty, but its log is not", errDamaged))
		}
		return nil
	}
	// SQLite takes a file of a few bytes for an empty database.
	if err := checkMagic(path); err != nil {
		return explain(path, err)
	}
	db, err := connect(path, checkParams)
	if err != nil {
		return err
	}
	err = inspect(ctx, db, path, size)
	return errors.Join(explain(path, err), db.Close())
}

// magic is the beginning of every database.
const magic = "SQLite format 3\x00"

func checkMagic(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(f, begin); err != nil || string(begin) != magic {
		return errNoDatabase
	}
	return nil
}

// makeFile creates the file if it does not exist, and returns its size.
func makeFile(path string) (int64, error) {
	info, err := os.Stat(path)
	if err == nil {
		if !info.Mode().IsRegular() {
			return 0, fmt.Errorf("%s is not a file", path)
		}
		return info.Size(), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	return 0, errors.Join(f.Sync(), f.Close(), syncDir(filepath.Dir(path)))
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

var (
	errNoDatabase = errors.New("it is not a database")
	errForeign    = errors.New("it is a database of another program")
	errDamaged    = errors.New("it is damaged")
)

// inspect checks that the database belongs to the host and is complete.
func inspect(ctx context.Context, db *sql.DB, path string, size int64) error {
	var id, version, pages, pageSize int64
	var tables int
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
	fresh := id == 0 && version == 0 && tables == 0 // the host was killed while it made it
	if id != applicationID && !fresh {
		return errForeign
	}
	whole, toCheck := pages*pageSize, int64(maxQuickCheckUnclean)
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		toCheck = maxQuickCheck
		if size < whole { // without a log all pages must be in the file
			return fmt.Errorf("%w: it has %d bytes of %d", errDamaged, size, whole)
		}
	}
	if whole > toCheck {
		return nil
	}
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, strings.Join(strings.Fields(verdict), " "))
	}
	return nil
}

// explain adds the file and a remedy to err.
func explain(path string, err error) error {
	code := 0
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code = e.Code() & 0xff
	}
	keep := fmt.Sprintf("move it away together with %[1]s-wal and %[1]s-shm, or bring back a copy", filepath.Base(path))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNewer):
		return fmt.Errorf("database %s: %w: use that version", path, err)
	case errors.Is(err, errForeign):
		return fmt.Errorf("database %s: %w: choose another state directory, or %s", path, err, keep)
	case errors.Is(err, errDamaged) || errors.Is(err, errNoDatabase):
		return fmt.Errorf("database %s: %w: %s", path, err, keep)
	case code == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("database %s: %w (%w): %s", path, errNoDatabase, err, keep)
	case code == sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("database %s: %w (%w): %s", path, errDamaged, err, keep)
	}
	return fmt.Errorf("database %s: %w", path, err)
}

// ErrGone is in the chain of an error of [Store.Do], together with [ErrUnwritable], if the
// database file, its log or its index is no longer at its path. Writes to the open file would be
// lost.
var ErrGone = errors.New("the database was removed or replaced under the host")

// openFile is a file at the time when the store was opened.
type openFile struct {
	path string
	info fs.FileInfo
}

// openFiles returns the files that the store has open. It opens none: closing one would drop
// SQLite's locks.
func openFiles(path string) ([]openFile, error) {
	var files []openFile
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			return nil, err
		}
		files = append(files, openFile{path + suffix, info})
	}
	return files, nil
}

// present returns an error if one of the open files is no longer at its path.
func (s *Store) present() error {
	for _, f := range s.files {
		info, err := os.Stat(f.path)
		if err == nil && !os.SameFile(info, f.info) {
			err = errors.New("it is another file")
		}
		if err != nil {
			return fmt.Errorf("%w: %w: %s: %w", ErrUnwritable, ErrGone, filepath.Base(f.path), err)
		}
	}
	return nil
}
