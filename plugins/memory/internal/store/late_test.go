package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// lateConn is the store's own connection, on which one statement lasts until its context has
// ended: SQLite has executed it, but the driver reports the end of the context. The real driver
// does so at some moments.
type lateConn struct {
	driver.Conn
	statement string
	end       context.CancelFunc
}

func (c lateConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	if err == nil && query == c.statement {
		return lateStmt{stmt, c.end}, nil
	}
	return stmt, err
}

type lateStmt struct {
	driver.Stmt
	end context.CancelFunc
}

func (s lateStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	inner, ok := s.Stmt.(driver.StmtExecContext)
	if !ok {
		return nil, errors.New("the driver knows no contexts")
	}
	r, err := inner.ExecContext(ctx, args)
	s.end()
	return r, errors.Join(err, ctx.Err())
}

// Connect and Driver make it a separate connector.
func (c lateConn) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c lateConn) Driver() driver.Driver                        { return nil }

// Close leaves the connection to the store.
func (c lateConn) Close() error { return nil }

// late calls f with a context that ends in a statement of the writer.
func (s *Store) late(t *testing.T, statement string, f func(context.Context) error) error {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	own := s.conn
	defer func() { s.conn = own }()
	var failed error
	must(t, own.Raw(func(conn any) error {
		inner, ok := conn.(driver.Conn)
		if !ok {
			t.Fatalf("a connection is a %T", conn)
		}
		db := sql.OpenDB(lateConn{inner, statement, end})
		var err error
		if s.conn, err = db.Conn(t.Context()); err != nil {
			return err
		}
		failed = f(ctx)
		return errors.Join(s.conn.Close(), db.Close())
	}))
	return failed
}

// A context that ends while a change begins leaves nothing open.
func TestTheContextEndsInBegin(t *testing.T) {
	s := open(t, temp(t))
	err := s.late(t, "BEGIN IMMEDIATE", func(ctx context.Context) error {
		return s.Write(ctx, func(tx *Tx) error { return tx.Put(noteOf("note-1", "one")) })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Write() = %v, want %v", err, context.Canceled)
	}
	s.put(t, noteOf("note-2", "two"))
	if st, err := s.Stats(t.Context(), now); err != nil || st.Notes != 1 {
		t.Errorf("%d notes, want 1: %v", st.Notes, err)
	}
}

// A context that ends while the log is emptied leaves the writer as patient as it
// was.
func TestTheContextEndsInForget(t *testing.T) {
	s := open(t, temp(t))
	s.put(t, noteOf("note-1", "one"))
	_ = s.late(t, "PRAGMA busy_timeout = 0", func(ctx context.Context) error { return s.Forget(ctx) })
	var timeout int
	if err := s.conn.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&timeout); err != nil || timeout != 10_000 {
		t.Errorf("afterwards the writer waits %d ms for others, want 10000: %v", timeout, err)
	}
}
