// Package store opens the host's SQLite file, updates its tables and writes to it. One goroutine
// writes: functions that callers pass to [Store.Do] during a commit share the next one, so
// durability costs one sync per group instead of one per caller. Readers have separate connections
// and never wait for the writer.
//
// A file that is damaged, of another program or of a newer version is refused and left unchanged.
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
	// FileName is the name of the database in the state directory.
	FileName = "toolhost.db"
	// maxReaders limits the connections for reading; a further reader waits.
	maxReaders = 4
)

var (
	// ErrUnwritable is in the chain of an error of [Store.Do] if nothing can be written now: the
	// disk is full, broken or read-only. Reading may still work.
	ErrUnwritable = errors.New("the database cannot be written")
	// ErrClosed is in the chain of an error of [Store.Do] after [Store.Close].
	ErrClosed = errors.New("the store is closed")
)

// Options configure a [Store].
type Options struct {
	// Dir is the state directory; required. The caller holds its lock: see
	// [Lock].
	Dir string
	// Logger gets errors that no caller sees; nil means none.
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

// Open opens DIR/toolhost.db, creates it if it does not exist, and applies missing migrations. ctx
// limits only the opening. Close the Store when it is no longer used.
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

// Read returns the connections for reading. They are read-only and few: close rows soon. Each query
// sees everything that was committed before it began.
func (s *Store) Read() *sql.DB { return s.reader }

// Prepare compiles a statement for use within [Store.Do], by [sql.Tx.StmtContext]. The store owns
// and closes it. Prepare waits for the writer's connection: call it when the program starts.
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

// Healthy returns nil if the last write succeeded and the database is where it was opened;
// otherwise it returns the problem. The store notices within seconds when writing is possible
// again.
func (s *Store) Healthy() error {
	if err := s.present(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sick
}

// setHealth remembers the result of the last write, and logs a change.
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

// Close finishes the group that is being written, refuses waiting functions with [ErrClosed], and
// closes the file. Further calls do nothing.
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
	// The writer is closed last: its end moves the write-ahead log into the file.
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
