// Package journal is the durable record of every call. Rows are only appended. Each row has a
// hash over itself and the row before, and each row and the head have a MAC with a key that no
// plugin can read. So [Journal.Verify] finds rows that were changed, removed, inserted or moved,
// a truncated end, and a chain that was computed again, and where. A file next to the database,
// journal.head, also names the last row, so that an older copy of the database and a removed
// write-ahead log are found.
//
// Replacing the database and journal.head together by an older copy, while no host runs, is not
// found. Keep copies elsewhere if that matters.
//
// Rows are ordered by their number, not by time.
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

// Options configure a [Journal].
type Options struct {
	// Store holds the rows; required. Close the journal before it.
	Store *store.Store
	// KeyPath is the key's file; required. It is made, readable by its owner only, when the journal
	// begins.
	KeyPath string
	// Redact returns a text without secrets; all texts of a row pass through it before they are
	// stored. nil means that there are no secrets.
	Redact func(string) string
	// Keep is how long rows are kept; 0 means forever.
	Keep time.Duration
	// MaxSize is the size from which the oldest rows are removed; 0 means no limit. The file does
	// not shrink; its space is used again. Neither age nor size removes rows from the first start
	// without an end on, or from the first changed row on.
	MaxSize tool.ByteSize
	// MaxLag limits the wait of a row that need not be durable at once; the default is 50 ms.
	MaxLag time.Duration
	// Older makes [Open] also check, in the background, the rows before those that it checks at
	// once; see [Journal.Integrity].
	Older bool
	// Now is the wall clock; the default is [time.Now].
	Now func() time.Time
	// Logger gets errors that no caller sees; nil means none.
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
	// unfiled is why the head file could not be written; nil if it could. Only the writer sets it.
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

// ErrChanged is in the chain of an error if the journal is not as the host wrote it: it was
// changed, or replaced by an older copy.
var ErrChanged = errors.New("the journal was changed")

// Open opens the journal in a store, and begins one if there is none. It refuses a journal whose
// key is missing and, with [ErrChanged], one whose head, head file or newest rows differ from what
// the host wrote; see [Verify]. ctx limits only the opening.
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

// loadFile opens the head file and compares it with the head. It makes one for a journal of a
// version without head files.
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

// openHead returns the key and the head that it seals. It begins a journal if neither exists.
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

// mayBegin refuses to begin a journal where a head file exists, unless a host was killed while it
// began this one.
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

// begin makes a key, a head file and a head. The key gets its final name when all are durable, so a
// key without a journal shows that the journal was removed.
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

// tampered is the error for a journal that was changed.
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
		case Change, Connection, Notice:
		}
	}
	maps.Copy(j.left, j.open)
	return rows.Err()
}

// Healthy returns nil if the last rows could be written and the journal is unchanged, as far as
// that was checked; otherwise it returns the problem, and [Journal.Start] refuses calls that are
// not read_only.
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

// Close writes the waiting rows and closes the journal. If rows cannot be written they are lost,
// and the error says so. If ctx ends first, Close returns at once and the writing continues.
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

// signal wakes the writer.
func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}
