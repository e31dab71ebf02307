// Package store keeps the notes of one user in one SQLite file. The file is the
// only truth: what a method has written without an error is on disk. Several
// processes may use the same file. Each change has a number, so that a caller that
// keeps notes in memory can read what changed since.
//
// A file that is damaged, or that belongs to another program, another user or a
// newer version, is refused and not changed.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The reasons for which notes cannot be read or written.
var (
	// ErrFile means that the file is damaged or does not hold this user's notes.
	ErrFile = errors.New("the file cannot be used")
	// ErrNewer means that a newer version of the plugin wrote the file.
	ErrNewer = errors.New("a newer version of the plugin wrote the file")
	// ErrFull means that the disk is full, has failed, or that the file has reached
	// its maximum size.
	ErrFull = errors.New("no space is left")
	// ErrBusy means that another process was writing for too long.
	ErrBusy = errors.New("another process is writing")
	// ErrNotFound means that the note does not exist.
	ErrNotFound = errors.New("the note does not exist")
	// ErrTooMany means that the user has reached [Options].MaxNotes.
	ErrTooMany = errors.New("there are too many notes")
)

// Options describe a file.
type Options struct {
	// Path is the path of the file. Its directory must exist.
	Path string
	// User is the owner of the notes. A file of another user is refused.
	User string
	// Embedder is the name of the current embedder.
	Embedder string
	// MaxNotes is the maximum number of notes; 0 means no limit.
	MaxNotes int
}

// Store is an open file. Its methods are safe for concurrent use.
type Store struct {
	opts     Options
	writer   *sql.DB
	reader   *sql.DB
	embedder int64
	file     os.FileInfo
	maxPages int64 // maximum size of the file; 0 means no limit

	writing sync.Mutex // held during a write; guards conn, owed
	conn    *sql.Conn  // the one connection of writer
	owed    bool       // the log may hold deleted notes; see Forget

	mu    sync.Mutex // guards stmts
	stmts map[statement]*sql.Stmt
}

// statement identifies a prepared statement.
type statement struct {
	side  preparer
	query string
}

// preparer is the [sql.DB] for reading or the [sql.Conn] for writing.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// maxReaders bounds the connections for reading.
const maxReaders = 2

// openPatience is how long Open retries while another process creates the file.
// SQLite does not wait while another process enables the log.
const openPatience = 10 * time.Second

// Open opens the file, creates it if it does not exist, and migrates its tables.
func Open(ctx context.Context, opts Options) (*Store, error) {
	for began := time.Now(); ; {
		s := &Store{opts: opts, stmts: map[statement]*sql.Stmt{}}
		err := s.open(ctx)
		if err == nil {
			return s, nil
		}
		err = errors.Join(explain(err), s.Close())
		if !errors.Is(err, ErrBusy) || time.Since(began) > openPatience {
			return nil, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Store) open(ctx context.Context) error {
	if err := check(ctx, s.opts.Path); err != nil {
		return err
	}
	var err error
	if s.writer, err = connect(s.opts.Path, writerParams); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	s.writer.SetMaxIdleConns(1)
	if err := migrate(ctx, s.writer, s.opts.User, migrations); err != nil {
		return err
	}
	var user string
	if err := s.writer.QueryRowContext(ctx, "SELECT user FROM meta").Scan(&user); err != nil {
		return err
	}
	if user != s.opts.User {
		return fmt.Errorf("%w: it holds the notes of another user", ErrFile)
	}
	if err := s.findEmbedder(ctx); err != nil {
		return err
	}
	if s.conn, err = s.writer.Conn(ctx); err != nil {
		return err
	}
	if s.maxPages = maxPages(); s.maxPages > 0 {
		if _, err := s.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", s.maxPages)); err != nil {
			return err
		}
	}
	if s.reader, err = connect(s.opts.Path, readerParams); err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(maxReaders)
	s.reader.SetMaxIdleConns(maxReaders)
	s.file, err = os.Stat(s.opts.Path)
	return err
}

// findEmbedder finds the embedder's number in this file, and assigns one if there
// is none.
func (s *Store) findEmbedder(ctx context.Context) error {
	const find = "SELECT id FROM embedder WHERE name = ?"
	err := s.writer.QueryRowContext(ctx, find, s.opts.Embedder).Scan(&s.embedder)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, err := s.writer.ExecContext(ctx, "INSERT OR IGNORE INTO embedder (name, dimension) VALUES (?, 0)", s.opts.Embedder); err != nil {
		return err
	}
	return s.writer.QueryRowContext(ctx, find, s.opts.Embedder).Scan(&s.embedder)
}

// Current reports whether the open file is still the one at its path. It may have
// been removed or replaced.
func (s *Store) Current() bool {
	now, err := os.Stat(s.opts.Path)
	return err == nil && os.SameFile(now, s.file)
}

// Size returns the size of the file and its log in bytes.
func (s *Store) Size() int64 {
	var size int64
	for _, path := range []string{s.opts.Path, s.opts.Path + "-wal"} {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.opts.Path }

// Close closes the file, which no other method may use any more. Committed changes
// are durable without it. Further calls do nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.stmts {
		errs = append(errs, stmt.Close())
	}
	s.stmts = nil
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
		s.conn = nil
	}
	// The writer is closed last, because that moves the log into the file.
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// prepared returns a prepared statement, which the store owns.
func (s *Store) prepared(ctx context.Context, side preparer, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stmts == nil {
		return nil, sql.ErrConnDone
	}
	if stmt := s.stmts[statement{side, query}]; stmt != nil {
		return stmt, nil
	}
	stmt, err := side.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	s.stmts[statement{side, query}] = stmt
	return stmt, nil
}

// query runs a query and calls f for each row.
func (s *Store) query(ctx context.Context, query string, f func(*sql.Rows) error, args ...any) error {
	stmt, err := s.prepared(ctx, s.reader, query)
	if err != nil {
		return explain(err)
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return explain(err)
	}
	return each(rows, f)
}

// number returns the number that a query yields.
func (s *Store) number(ctx context.Context, query string, args ...any) (int, error) {
	var n int
	err := s.query(ctx, query, func(rows *sql.Rows) error { return rows.Scan(&n) }, args...)
	return n, err
}

// ids returns the IDs of notes that a query yields.
func (s *Store) ids(ctx context.Context, query string, args ...any) ([]int64, error) {
	var ids []int64
	err := s.query(ctx, query, func(rows *sql.Rows) error { return scanID(rows, &ids) }, args...)
	return ids, err
}

// scanID appends the ID in a row.
func scanID(rows *sql.Rows, to *[]int64) error {
	var id int64
	err := rows.Scan(&id)
	*to = append(*to, id)
	return err
}

// each calls f for each row, and closes rows.
func each(rows *sql.Rows, f func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return explain(err)
		}
	}
	return explain(rows.Err())
}

// explain wraps an error of SQLite with its reason.
func explain(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	return err
}
