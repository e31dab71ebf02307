package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/toolhost/toolhost/host/internal/state/store"
)

const (
	// newest is the number of rows that are checked before a journal is opened.
	newest = 300
	// pageRows limits the rows that are checked in one transaction.
	pageRows = 500
)

// Integrity says whether the journal is unchanged, as far as is known. In any state, the head, the
// head file and the newest rows were correct when the journal was opened.
type Integrity string

// The values of an [Integrity].
const (
	// Verified: all rows were correct.
	Verified Integrity = "verified"
	// Verifying: older rows are being checked.
	Verifying Integrity = "verifying"
	// NewestVerified: older rows were not checked; see [Options.Older].
	NewestVerified Integrity = "newest_verified"
	// Changed: an older row was changed. Calls that are not read_only are refused.
	Changed Integrity = "changed"
)

// errFoundChanged is the error of Start and Healthy in state [Changed].
var errFoundChanged = fmt.Errorf("%w: toolhost journal verify says where", ErrChanged)

// checks check the rows that existed when the journal was opened.
type checks struct {
	older   lastRow // the oldest row that was checked at once; zero if all were
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // guards state; taken after no other
	state Integrity
}

// Integrity returns the current state.
func (j *Journal) Integrity() Integrity { return j.checks.integrity() }

func (c *checks) integrity() Integrity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *checks) set(state Integrity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

// checkNewest checks the newest rows, and that the head names the last one.
func (j *Journal) checkNewest(ctx context.Context) error {
	h := j.head
	v := verifier{
		key: j.key, chain: newChain(j.key), head: h, genuine: true,
		expected: h.AnchorSeq + 1, prev: h.AnchorHash, hasPrev: true, trusted: true,
	}
	from := h.Seq - newest
	all := from <= h.AnchorSeq
	if all {
		from = math.MinInt64 // finds rows that were inserted before the first
	} else {
		v.expected, v.hasPrev = from, false
	}
	rows, err := j.opts.Store.Read().QueryContext(ctx, selectRows+" WHERE seq >= ? ORDER BY seq", from)
	if err != nil {
		return err
	}
	if err := v.rows(rows, func(s stored) {
		if !all && s.seq == from {
			j.checks.older = lastRow{s.seq, v.prev}
		}
	}); err != nil {
		return err
	}
	v.end()
	if len(v.report.Problems) > 0 {
		return tampered(v.report.Problems[0].String())
	}
	return nil
}

// begin checks the older rows in the background until end, if there are any and Options.Older is
// set.
func (c *checks) begin(ctx context.Context, j *Journal) {
	ctx, c.cancel = context.WithCancel(ctx)
	switch {
	case c.older.Seq == 0:
		c.set(Verified)
	case !j.opts.Older:
		c.set(NewestVerified)
	default:
		c.set(Verifying)
		c.running.Go(func() { // ends with end
			what, err := j.checkOlder(ctx, c.older)
			switch {
			case ctx.Err() != nil:
			case err != nil && !store.Damaged(err):
				c.set(NewestVerified)
				j.logger.Error("older rows of the journal could not be checked", "error", err)
			case err != nil || what != "":
				c.set(Changed)
				j.logger.Error("the journal was changed: calls that change something are refused; run toolhost journal verify", "problem", what, "error", err)
			default:
				c.set(Verified)
			}
		})
	}
}

// end stops the background check and waits for it.
func (c *checks) end() {
	c.cancel()
	c.running.Wait()
}

// checkOlder checks the rows from the first to last, page by page. It returns the first problem, or
// "".
func (j *Journal) checkOlder(ctx context.Context, last lastRow) (what string, err error) {
	v := verifier{
		key: j.key, chain: newChain(j.key), head: head{Seq: last.Seq, Hash: last.Hash}, genuine: true,
		expected: math.MinInt64,
	}
	for v.expected <= last.Seq && len(v.report.Problems) == 0 {
		more, err := j.checkPage(ctx, &v)
		if err != nil {
			return "", err
		}
		if !more {
			break
		}
	}
	if len(v.report.Problems) == 0 {
		v.end()
	}
	if len(v.report.Problems) > 0 {
		return v.report.Problems[0].String(), nil
	}
	return "", nil
}

// checkPage checks the next rows, and reports whether there may be more. Retention continues
// meanwhile, so each page reads where the journal begins.
func (j *Journal) checkPage(ctx context.Context, v *verifier) (more bool, err error) {
	tx, err := j.opts.Store.Read().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	body, mac, err := readHead(ctx, tx)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	h, genuine, errHead := unsealHead(v.chain, body, mac)
	if err != nil || errHead != nil || !genuine {
		v.problem(0, 0, "the head is missing or was changed")
		return false, nil
	}
	from := v.expected
	if h.AnchorSeq >= v.expected { // at the beginning, or retention has removed the next row
		v.expected, v.prev, v.hasPrev, v.trusted = h.AnchorSeq+1, h.AnchorHash, true, true
	}
	if h.AnchorSeq >= v.head.Seq {
		v.prev = v.head.Hash // retention has checked the rows that it removed
		v.expected = v.head.Seq + 1
		return false, nil
	}
	rows, err := tx.QueryContext(ctx, selectRows+" WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?", from, v.head.Seq, pageRows)
	if err != nil {
		return false, err
	}
	before := v.report.Rows
	err = v.rows(rows, func(stored) {})
	return v.report.Rows-before == pageRows, err
}
