package journal

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// maxProblems limits the problems of a report.
const maxProblems = 100

// Report is the result of [Verify].
type Report struct {
	// Rows counts the rows that were read, from First to Last.
	Rows  int64 `json:"rows"`
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Problems are in the order of the rows; empty means that the journal is as the host wrote it.
	Problems []Problem `json:"problems"`
}

// Problem is a place where the journal was changed.
type Problem struct {
	// From and To are the first and the last row that the problem is about; 0
	// if it is about the journal as a whole.
	From int64  `json:"from,omitempty"`
	To   int64  `json:"to,omitempty"`
	What string `json:"what"`
}

// String returns the problem as a line of text.
func (p Problem) String() string {
	switch p.From {
	case 0:
		return p.What
	case p.To:
		return fmt.Sprintf("row %d: %s", p.From, p.What)
	}
	return fmt.Sprintf("rows %d-%d: %s", p.From, p.To, p.What)
}

// Verify reads the whole journal and reports changes. It returns an error if the journal could not
// be read.
func (j *Journal) Verify(ctx context.Context) (Report, error) {
	j.mu.Lock()
	known := j.head
	j.mu.Unlock()
	return verify(ctx, j.opts, j.key, &known)
}

// Verify is [Journal.Verify] for a journal that is not open, such as one that [Open] refuses. It
// changes nothing.
func Verify(ctx context.Context, opts Options) (Report, error) {
	return verify(ctx, opts, nil, nil)
}

// verify checks with the key in its file or, if that is missing, with the known key. known is a
// recent head of the journal.
func verify(ctx context.Context, opts Options, key []byte, known *head) (Report, error) {
	v := verifier{key: key, known: known}
	v.prepare(opts.KeyPath, headPath(opts.Store))
	tx, err := opts.Store.Read().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return Report{}, fmt.Errorf("verify the journal: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	if err := v.verify(ctx, tx); err != nil {
		return Report{}, fmt.Errorf("verify the journal: %w", err)
	}
	slices.SortStableFunc(v.report.Problems, func(a, b Problem) int { return int(a.From - b.From) })
	return v.report, nil
}

// verifier walks the rows once.
type verifier struct {
	key     []byte
	known   *head
	filed   lastRow // of the head file
	noFile  error   // why that is not known
	report  Report
	chain   *chain
	head    head
	genuine bool // the host wrote head

	expected int64  // the number of the next row
	prev     digest // the hash of the row before it
	hasPrev  bool   // that row is there and has a hash
	trusted  bool   // and is unchanged
}

func (v *verifier) verify(ctx context.Context, tx *sql.Tx) error {
	if err := v.checkHead(ctx, tx); err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, selectRows+" ORDER BY seq")
	if err != nil {
		return err
	}
	if err := v.rows(rows, func(stored) {}); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v.problem(v.expected, v.expected, "this row and those after it cannot be read: "+err.Error())
		return nil
	}
	v.end()
	return v.checkIndex(ctx, tx)
}

const selectRows = "SELECT seq, call, body, hash, mac FROM journal"

// rows checks rows, and passes on each row that it has checked.
func (v *verifier) rows(rows *sql.Rows, checked func(stored)) error {
	defer rows.Close()
	for rows.Next() {
		var s stored
		var call, body sql.NullString // a damaged row may lack required parts
		var hash, mac []byte
		if err := rows.Scan(&s.seq, &call, &body, &hash, &mac); err != nil {
			return err
		}
		s.call, s.body = call.String, body.String
		v.row(s, hash, mac)
		checked(s)
	}
	return rows.Err()
}

// checkKey reads the key.
func (v *verifier) checkKey(path string) {
	key, err := readKey(path)
	switch {
	case err == nil && v.key != nil && !hmac.Equal(key, v.key):
		v.problem(0, 0, "the key in "+path+" is not the one that the host uses")
	case err == nil:
		v.key = key
	case v.key != nil:
		v.problem(0, 0, err.Error()+"; the running host still has the key, but cannot start again without it")
	default:
		v.problem(0, 0, err.Error()+"; without it a rewritten journal looks genuine")
	}
}

// prepare reads the key, and the head file, which only the key authenticates. It runs before the
// transaction: the head file is never ahead of the rows.
func (v *verifier) prepare(keyPath, headPath string) {
	v.checkKey(keyPath)
	v.chain = newChain(v.key)
	if v.key != nil {
		v.filed, v.noFile = readHeadFile(headPath, v.chain)
	}
}

// checkFile compares the head file with the head.
func (v *verifier) checkFile(ctx context.Context, tx *sql.Tx) error {
	switch {
	case errors.Is(v.noFile, errNoHeadFile) && !v.head.Filed, v.key == nil:
		return nil // a journal of a version without one
	case v.noFile != nil:
		v.problem(0, 0, v.noFile.Error())
		return nil //nolint:nilerr // it is one of the problems
	}
	what, err := v.filed.disagrees(ctx, tx, v.head)
	if what != "" {
		v.problem(0, 0, what)
	}
	return err
}

// checkHead reads the head.
func (v *verifier) checkHead(ctx context.Context, tx *sql.Tx) error {
	body, mac, err := readHead(ctx, tx)
	if errors.Is(err, sql.ErrNoRows) {
		v.problem(0, 0, "the head is missing: where the journal ends is not known")
		return nil
	}
	if err != nil {
		return err
	}
	h, genuine, err := unsealHead(v.chain, body, mac)
	if err != nil {
		v.problem(0, 0, err.Error())
		return nil
	}
	if v.key != nil && !genuine {
		v.problem(0, 0, "the head was changed, or written without the host's key: where the journal ends is not known")
		return nil
	}
	v.head, v.genuine = h, true
	v.expected, v.prev, v.hasPrev, v.trusted = h.AnchorSeq+1, h.AnchorHash, true, true
	if k := v.known; k != nil && h.Seq < k.Seq {
		v.problem(h.Seq+1, k.Seq, "missing at the end, and the head is an earlier one")
		return nil
	}
	return v.checkFile(ctx, tx)
}

// row checks one row, by itself and against the previous one.
func (v *verifier) row(s stored, hash, mac []byte) {
	if v.report.Rows++; v.report.Rows == 1 {
		v.report.First = s.seq
		if !v.genuine {
			v.expected = s.seq
		}
	}
	switch {
	case s.seq < 1:
		v.problem(0, 0, fmt.Sprintf("a row with number %d was inserted", s.seq))
		return
	case s.seq < v.expected:
		v.problem(s.seq, s.seq, "inserted: the journal begins after it")
		return
	case s.seq > v.expected:
		to := s.seq - 1
		if v.genuine {
			to = min(to, v.head.Seq)
		}
		if v.expected <= to {
			v.problem(v.expected, to, "missing")
		}
		v.hasPrev = false
	}
	got, whole := asDigest(hash)
	content := v.chain.content(s.seq, s.call, s.body)
	follows := whole && (!v.hasPrev || got == v.chain.link(v.prev, content))
	genuine := v.key == nil || whole && hmac.Equal(mac, v.chain.rowMAC(content, got))
	switch {
	case v.key == nil && !follows:
		v.problem(s.seq, s.seq, "changed, or the row before it was: its hash does not fit")
	case !genuine && follows && v.hasPrev:
		v.problem(s.seq, s.seq, "rewritten without the host's key: its hash is correct, its MAC is not")
	case !genuine:
		v.problem(s.seq, s.seq, "changed: its hash and its MAC do not fit")
	case !follows && v.trusted:
		v.problem(s.seq, s.seq, "moved: it does not follow the row before it")
	}
	v.report.Last = s.seq
	v.expected, v.prev, v.hasPrev, v.trusted = s.seq+1, got, whole, genuine
}

// end checks that the head names the last row.
func (v *verifier) end() {
	last := v.expected - 1
	switch {
	case !v.genuine:
	case last < v.head.Seq:
		v.problem(last+1, v.head.Seq, "missing at the end")
	case last > v.head.Seq:
		v.problem(v.head.Seq+1, last, "inserted: the journal ends before them")
	case v.prev != v.head.Hash && v.trusted:
		v.problem(last, last, "not the row that the head names")
	}
}

// checkIndex checks that queries find each row.
func (v *verifier) checkIndex(ctx context.Context, tx *sql.Tx) error {
	var verdict string
	if err := tx.QueryRowContext(ctx, "PRAGMA integrity_check(journal)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		v.problem(0, 0, "the table is damaged: "+verdict)
	}
	return nil
}

// problem adds a problem, or extends the last one if it is the same.
func (v *verifier) problem(from, to int64, what string) {
	problems := v.report.Problems
	if n := len(problems); n > 0 {
		last := &problems[n-1]
		if from > 0 && last.What == what && last.To+1 == from {
			last.To = to
			return
		}
		if n == maxProblems {
			*last = Problem{From: last.From, To: max(to, last.To), What: "and more problems from here"}
			return
		}
	}
	v.report.Problems = append(problems, Problem{From: from, To: to, What: what})
}
