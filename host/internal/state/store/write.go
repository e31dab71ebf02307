package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// maxQueue limits the waiting functions; when it is full, Do waits until its context ends.
	maxQueue = 256
	// maxGroup limits the functions in one transaction.
	maxGroup = 64
	// probeEvery is how often a store that could not write tries again if no function waits.
	probeEvery = time.Second
)

// request is a function that waits to be run.
type request struct {
	f     func(*sql.Tx) error
	taken atomic.Bool // by the writer, which will answer, or by Do, which gave up
	done  chan error  // gets the one answer
}

// Do runs f in the writer's next transaction. It returns when that is durable, or with the error
// that undid it. f shares the transaction with other functions, but an error of f undoes only what
// f did.
//
// f may run twice: it must use only tx, and overwrite its results of the first run. It must return
// every error of tx except [sql.ErrNoRows] and expected constraint errors; it must neither commit
// nor keep rows open.
//
// While too many functions wait, Do waits for room. If ctx ends before f begins, f never runs;
// after that Do waits for the outcome. An error with [ErrUnwritable] in its chain means that
// nothing can be written now.
func (s *Store) Do(ctx context.Context, f func(*sql.Tx) error) error {
	r := &request{f: f, done: make(chan error, 1)}
	select {
	case <-s.closing:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	select {
	case s.requests <- r:
	case <-s.closing:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-r.done:
		return err
	case <-s.stopped:
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			return context.Cause(ctx)
		}
		return <-r.done
	}
	if r.taken.CompareAndSwap(false, true) {
		return ErrClosed
	}
	return <-r.done
}

// write is the writer: it commits the waiting functions as groups until the store is closed.
func (s *Store) write(ctx context.Context) {
	defer close(s.stopped)
	for {
		var probe <-chan time.Time
		if s.Healthy() != nil {
			probe = time.After(probeEvery)
		}
		select {
		case <-s.closing:
			return
		case r := <-s.requests:
			s.writeGroup(ctx, s.gather(r))
		case <-probe:
			s.setHealth(s.commit(ctx, nil))
		}
	}
}

// gather returns first and the other waiting functions.
func (s *Store) gather(first *request) []*request {
	var group []*request
	for r := first; ; {
		if r.taken.CompareAndSwap(false, true) {
			group = append(group, r)
		}
		if len(group) == maxGroup {
			return group
		}
		select {
		case r = <-s.requests:
		default:
			return group
		}
	}
}

// writeGroup writes the group in one transaction. If one function fails, all are undone, and each
// of the others gets its own transaction.
func (s *Store) writeGroup(ctx context.Context, group []*request) {
	if len(group) == 0 {
		return
	}
	err := s.commit(ctx, group)
	failed, ofOne := errors.AsType[*functionError](err)
	if !ofOne {
		s.setHealth(err)
		answer(group, err)
		return
	}
	for i, r := range group {
		if i == failed.index {
			r.done <- failed.err
			continue
		}
		err := s.commit(ctx, group[i:i+1])
		if alone, ok := errors.AsType[*functionError](err); ok {
			r.done <- alone.err
			continue
		}
		s.setHealth(err)
		r.done <- err
	}
}

func answer(group []*request, err error) {
	for _, r := range group {
		r.done <- err
	}
}

// functionError is the error of one function of a group.
type functionError struct {
	index int
	err   error
}

func (e *functionError) Error() string { return e.err.Error() }

// commit runs the functions of the group and commits. With a nil group it rewrites existing data,
// to find out whether writing is possible. Its error is nil, a *functionError or has
// [ErrUnwritable] in its chain.
func (s *Store) commit(ctx context.Context, group []*request) error {
	if err := s.present(); err != nil {
		return err
	}
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	if group == nil {
		err = touch(ctx, tx)
	}
	for i, r := range group {
		if err = run(r.f, tx); err == nil {
			continue
		}
		if !unwritable(err) {
			err = &functionError{index: i, err: err}
		}
		break
	}
	if err == nil {
		err = tx.Commit()
	} else if _, ofOne := errors.AsType[*functionError](err); ofOne {
		_ = tx.Rollback() // SQLite may have rolled it back already
		return err
	}
	if err != nil {
		_ = tx.Rollback() // SQLite may have rolled it back already
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return nil
}

// run calls f. A panic of f becomes its error, because the writer serves other callers too.
func run(f func(*sql.Tx) error, tx *sql.Tx) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicked(cause)
		}
	}()
	return f(tx)
}

// touch rewrites the schema's version.
func touch(ctx context.Context, tx *sql.Tx) error {
	version, err := userVersion(ctx, tx)
	if err != nil {
		return err
	}
	return setUserVersion(ctx, tx, version)
}

// unwritable reports whether err means that the file cannot be written, rather than that a
// statement was wrong.
func unwritable(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// Damaged reports whether err means that the file is damaged.
func Damaged(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_CORRUPT || e.Code()&0xff == sqlite3.SQLITE_NOTADB)
}
