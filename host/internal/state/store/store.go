// Package store opens the host's one SQLite file, brings its tables up to date
// and writes to it. One goroutine writes: what callers hand to [Store.Do] while
// a commit is under way shares the next one, so that durability costs one sync
// per group and not per caller. Readers have connections of their own and never
// wait for the writer.
//
// A file that is damaged, of another program or of a newer version of this one
// is refused and left as it is.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync"

	"github.com/hashicorp/go-hclog"
)

const (
	// FileName is the database's, in the state directory.
	FileName = "toolhost.db"
	// maxReaders bounds the connections for reading; a further reader waits.
	maxReaders = 4
)

var (
	// ErrUnwritable is in the chain of an error of [Store.Do] if nothing can be
	// written now: the disk is full, broken or read-only. What was read before
	// can still be read.
	ErrUnwritable = errors.New("the database cannot be written")
	// ErrClosed is in the chain of an error of [Store.Do] after [Store.Close].
	ErrClosed = errors.New("the store is closed")
)

// Options say where the store is.
type Options struct {
	// Dir is the state directory; required. The caller holds its lock: see
	// [Lock].
	Dir string
	// Logger takes what happens without a caller; nil drops it.
	Logger hclog.Logger
}

// Store is an open database. Its methods may be called concurrently.
type Store struct {
	path   string
	logger hclog.Logger
	writer *sql.DB // one connection
	reader *sql.DB
	files  []openFile

	requests chan *request
	closing  chan struct{} // closed by Close
	stopped  chan struct{} // closed when the writer has ended
	close    sync.Once

	mu    sync.Mutex // guards sick and stmts
	sick  error      // why nothing can be written; nil if it can
	stmts []*sql.Stmt
}

// Open opens DIR/toolhost.db, makes it if there is none, and applies the
// migrations that it lacks. ctx bounds the opening only. Close the Store when
// nobody uses it any more.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Dir == "" {
		return nil, errors.New("open the database: no directory is given")
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	s := &Store{
		path:     filepath.Join(opts.Dir, FileName),
		logger:   opts.Logger,
		requests: make(chan *request, maxQueue),
		closing:  make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	// The writer outlives ctx; Close ends it and waits.
	go s.write(context.WithoutCancel(ctx))
	return s, nil
}

// open checks the file, opens both sides and migrates.
func (s *Store) open(ctx context.Context) error {
	if err := check(ctx, s.path); err != nil {
		return err
	}
	var err error
	if s.writer, err = connect(s.path, writerParams); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	s.writer.SetMaxIdleConns(1)
	if err := migrate(ctx, s.writer); err != nil {
		return explain(s.path, err)
	}
	if s.reader, err = connect(s.path, readerParams); err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(maxReaders)
	s.reader.SetMaxIdleConns(maxReaders)
	if s.files, err = openFiles(s.path); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	return nil
}

// Path returns the path of the database.
func (s *Store) Path() string { return s.path }

// Read returns the connections for reading. They are read-only and few: close
// rows soon. Each query sees all that was committed before it began.
func (s *Store) Read() *sql.DB { return s.reader }

// Prepare compiles a statement for use within [Store.Do], by
// [sql.Tx.StmtContext]. It belongs to the store, which closes it. Call it when
// the program starts: it waits for the writer's connection.
func (s *Store) Prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	stmt, err := s.writer.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stmts = append(s.stmts, stmt)
	return stmt, nil
}

// Healthy returns nil if the last write was possible and the database is where
// it was opened, and otherwise what is wrong. The store finds out by itself,
// within seconds, when writing is possible again.
func (s *Store) Healthy() error {
	if err := s.present(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sick
}

// setHealth remembers how the last write went, and logs the change.
func (s *Store) setHealth(err error) {
	s.mu.Lock()
	before := s.sick
	s.sick = err
	s.mu.Unlock()
	switch {
	case before == nil && err != nil:
		s.logger.Error("the database cannot be written", "file", s.path, "error", err)
	case before != nil && err == nil:
		s.logger.Info("the database can be written again", "file", s.path)
	}
}

// Close lets the group that is being written finish, refuses what waits with
// [ErrClosed], and closes the file. Further calls do nothing.
func (s *Store) Close() error {
	var err error
	s.close.Do(func() {
		close(s.closing)
		<-s.stopped
		err = s.closeFiles()
	})
	return err
}

func (s *Store) closeFiles() error {
	var errs []error
	for _, stmt := range s.stmts {
		errs = append(errs, stmt.Close())
	}
	// The writer goes last: its end moves the write-ahead log into the file.
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// panicked is the error of a function that panicked.
func panicked(cause any) error {
	return fmt.Errorf("a write to the database panicked: %v\n%s", cause, debug.Stack())
}
