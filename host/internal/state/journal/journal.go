// Package journal is the durable record of every call. Rows are only appended;
// each holds a hash over itself and the row before, and each row and the head
// carry a MAC with a key that no plugin can see. So a row that was changed,
// removed, inserted or moved, a tail that was cut and a chain that was computed
// anew are found, and where: see [Journal.Verify]. A file beside the database,
// journal.head, names the last row too, so that an older copy of the database
// and a removed write-ahead log are found.
//
// What cannot be found: that the database and journal.head were put back to an
// earlier state together while no host ran. Keep copies elsewhere if that
// matters.
//
// Rows are ordered by their number, never by the clock.
package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options say where the journal is and what it keeps.
type Options struct {
	// Store holds the rows; required. Close the journal before it.
	Store *store.Store
	// KeyPath is the file of the key; required. It is made, for its owner
	// only, when the journal begins.
	KeyPath string
	// Redact returns a text without secrets; all texts of a row pass through
	// it before they are stored. nil means that there are none.
	Redact func(string) string
	// Keep is how long rows are kept; 0 means without end.
	Keep time.Duration
	// MaxSize is the size from which the oldest rows are removed; 0 means
	// without bound. The file does not shrink, its space is used again. Rows
	// stay, by age and by size, from the first start without an end and from
	// the first row that was changed.
	MaxSize tool.ByteSize
	// MaxLag is how long a row that need not be durable at once may wait; the
	// default is 50 ms.
	MaxLag time.Duration
	// Older says that [Open] also begins to check the rows before those that it
	// checks at once; see [Journal.Integrity].
	Older bool
	// Now is the wall clock; the default is [time.Now].
	Now func() time.Time
	// Logger takes what happens without a caller; nil drops it.
	Logger hclog.Logger

	step func(what string) // for tests: called before each step that a crash may prevent
}

const defaultLag = 50 * time.Millisecond

// Journal is an open journal. Its methods may be called concurrently.
type Journal struct {
	opts   Options
	logger hclog.Logger
	key    []byte
	chain  *chain // the writer's
	insert [len(insertSizes)]*sql.Stmt
	update *sql.Stmt

	wake    chan struct{} // holds one; tells the writer to look
	stopped chan struct{} // closed when the writer has ended
	checks  checks

	mu     sync.Mutex // guards all below
	queue  queue
	room   chan struct{}    // closed when the queue has room again
	news   chan struct{}    // closed at the next commit
	head   head             // as committed
	open   map[string]int64 // starts without an end that are committed, by call
	left   map[string]int64 // those of them that were there at Open
	closed bool
	// unfiled says why the head file could not be written; nil if it could.
	// Only the writer sets it.
	unfiled error

	// The writer's own.
	file       *headFile
	headMAC    []byte
	starts     []start   // committed, in order; those at the front may have ended
	oldest     time.Time // that of the oldest row; zero if it must be read
	retainFrom time.Time // when retention may be tried again
}

// start is a start row.
type start struct {
	seq  int64
	call string
}

// ErrClosed is in the chain of an error after [Journal.Close].
var ErrClosed = errors.New("the journal is closed")

// ErrChanged is in the chain of an error if the journal is not as the host wrote
// it: somebody else changed it, or put it back to an earlier state.
var ErrChanged = errors.New("the journal was changed")

// Open opens the journal in a store, and begins it if there is none. It
// refuses a journal whose key is missing, and, with [ErrChanged], one whose head,
// head file or newest rows are not as it left them: see [Verify]. ctx bounds the
// opening only.
func Open(ctx context.Context, opts Options) (*Journal, error) {
	if opts.Store == nil || opts.KeyPath == "" {
		return nil, errors.New("open the journal: no store or no path of the key is given")
	}
	if opts.MaxLag <= 0 {
		opts.MaxLag = defaultLag
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	if opts.step == nil {
		opts.step = func(string) {}
	}
	j := &Journal{
		opts:    opts,
		logger:  opts.Logger,
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		room:    make(chan struct{}),
		news:    make(chan struct{}),
		open:    map[string]int64{},
		left:    map[string]int64{},
	}
	if err := j.load(ctx); err != nil {
		if j.file != nil {
			err = errors.Join(err, j.file.file.Close())
		}
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	// Both outlive ctx; Close ends them and waits.
	j.checks.begin(context.WithoutCancel(ctx), j)
	go j.write(context.WithoutCancel(ctx))
	return j, nil
}

// load reads the key, the head and the starts without an end.
func (j *Journal) load(ctx context.Context) error {
	for i, size := range insertSizes {
		var err error
		if j.insert[i], err = j.opts.Store.Prepare(ctx, insertRows(size)); err != nil {
			return err
		}
	}
	var err error
	if j.update, err = j.opts.Store.Prepare(ctx, "UPDATE journal_head SET body = ?, mac = ? WHERE id = 1 AND mac = ?"); err != nil {
		return err
	}
	if j.key, j.head, err = openHead(ctx, j.opts); err != nil {
		return err
	}
	j.chain = newChain(j.key)
	if _, j.headMAC, err = readHead(ctx, j.opts.Store.Read()); err != nil {
		return err
	}
	if err := j.checkNewest(ctx); err != nil {
		return err
	}
	if err := j.loadFile(ctx); err != nil {
		return err
	}
	return j.loadOpen(ctx)
}

// loadFile opens the head file and compares it with the head. It makes one for
// a journal of a version that had none.
func (j *Journal) loadFile(ctx context.Context) (err error) {
	var last lastRow
	path := headPath(j.opts.Store)
	j.file, last, err = openHeadFile(path, j.chain, j.opts.step)
	switch {
	case errors.Is(err, errNoHeadFile) && !j.head.Filed:
		j.file, err = makeHeadFile(path, j.chain, lastRow{j.head.Seq, j.head.Hash}, j.opts.step)
	case err == nil:
		var what string
		if what, err = last.disagrees(ctx, j.opts.Store.Read(), j.head); what != "" {
			err = tampered(what)
		}
	}
	j.head.Filed = true
	return err
}

// openHead returns the key and the head that it seals. It begins a journal if
// there is neither.
func openHead(ctx context.Context, opts Options) (key []byte, h head, err error) {
	body, mac, err := readHead(ctx, opts.Store.Read())
	begun := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, head{}, err
	}
	key, err = readKey(opts.KeyPath)
	switch {
	case err == nil && !begun:
		return nil, head{}, fmt.Errorf("%w: the journal in %s is gone, but its key %s is there; if you removed the journal, remove the key and %s too",
			ErrChanged, opts.Store.Path(), opts.KeyPath, headName)
	case errors.Is(err, errNoKey) && begun:
		// The host may have been killed before the key had its lasting name.
		var errNew error
		if key, errNew = readKey(opts.KeyPath + newSuffix); errNew != nil {
			return nil, head{}, fmt.Errorf("%w; the journal cannot be continued without it: bring it back, or move %s away",
				err, opts.Store.Path())
		}
		err = keepKey(opts.KeyPath)
	case errors.Is(err, errNoKey):
		if err := mayBegin(opts); err != nil {
			return nil, head{}, err
		}
		return begin(ctx, opts)
	}
	if err != nil {
		return nil, head{}, err
	}
	h, genuine, err := unsealHead(newChain(key), body, mac)
	if err != nil {
		return nil, head{}, err
	}
	if !genuine {
		return nil, head{}, tampered("its head was changed, or written with another key than " + opts.KeyPath)
	}
	return key, h, nil
}

// mayBegin refuses to begin where a head file tells of a journal, unless a host
// was killed while it began this one.
func mayBegin(opts Options) error {
	path := headPath(opts.Store)
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, errNew := os.Lstat(opts.KeyPath + newSuffix); err != nil || errNew == nil {
		return err
	}
	return fmt.Errorf("%w: the journal in %s and its key are gone, but %s is there; if you removed them, remove it too",
		ErrChanged, opts.Store.Path(), path)
}

// begin makes a key, a head file and a head. Only when all are durable does the
// key get its lasting name, so that a key without a journal tells that the
// journal was removed.
func begin(ctx context.Context, opts Options) (key []byte, h head, err error) {
	opts.step("make the key")
	if key, err = makeKey(opts.KeyPath + newSuffix); err != nil {
		return nil, head{}, fmt.Errorf("make the key: %w", err)
	}
	file, err := makeHeadFile(headPath(opts.Store), newChain(key), lastRow{}, opts.step)
	if err != nil {
		return nil, head{}, err
	}
	if err := file.file.Close(); err != nil {
		return nil, head{}, err
	}
	h.Filed = true
	body, mac, err := h.seal(newChain(key))
	if err != nil {
		return nil, head{}, err
	}
	opts.step("commit the head")
	err = opts.Store.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO journal_head (id, body, mac) VALUES (1, ?, ?)", body, mac)
		return err
	})
	if err != nil {
		return nil, head{}, err
	}
	opts.step("keep the key")
	return key, h, keepKey(opts.KeyPath)
}

// readHead returns the stored head, or [sql.ErrNoRows].
func readHead(ctx context.Context, db querier) (body string, mac []byte, err error) {
	err = db.QueryRowContext(ctx, "SELECT body, mac FROM journal_head WHERE id = 1").Scan(&body, &mac)
	return body, mac, err
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// tampered is the error for a journal that somebody else wrote to.
func tampered(what string) error { return fmt.Errorf("%w: %s", ErrChanged, what) }

// loadOpen collects the starts without an end.
func (j *Journal) loadOpen(ctx context.Context) error {
	if j.head.OpenFrom == 0 {
		return nil
	}
	rows, err := j.opts.Store.Read().QueryContext(ctx, "SELECT seq, call, body FROM journal WHERE seq >= ? ORDER BY seq", j.head.OpenFrom)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var call, body string
		if err := rows.Scan(&seq, &call, &body); err != nil {
			return err
		}
		switch bodyKind(body) {
		case Start:
			j.open[call] = seq
			j.starts = append(j.starts, start{seq: seq, call: call})
		case End:
			delete(j.open, call)
		case Change, Notice:
		}
	}
	maps.Copy(j.left, j.open)
	return rows.Err()
}

// Healthy returns nil if the last rows could be written and the journal is as
// the host wrote it as far as that was checked, and otherwise what is wrong.
// While it is not nil, calls that are not read_only are refused by
// [Journal.Start].
func (j *Journal) Healthy() error {
	if j.checks.integrity() == Changed {
		return errFoundChanged
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.unfiled != nil {
		return j.unfiled
	}
	if len(j.queue.rows) == 0 && errors.Is(j.queue.sick, store.ErrUnwritable) {
		return j.opts.Store.Healthy() // which tries again when the journal has nothing to write
	}
	return j.queue.sick
}

// Close writes what waits and ends the journal; rows that cannot be written
// are lost, and its error says so. When ctx ends first, Close returns at once
// and the writing goes on.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.signal()
	j.checks.end()
	select {
	case <-j.stopped:
	case <-ctx.Done():
		return fmt.Errorf("close the journal: %w", context.Cause(ctx))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.queue.rows); n > 0 {
		return fmt.Errorf("close the journal: %d rows could not be written", n)
	}
	return nil
}

// signal tells the writer to look.
func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}
