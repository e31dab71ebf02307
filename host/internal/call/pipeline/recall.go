package pipeline

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxKey bounds an idempotency key, in bytes.
	maxKey = 200
	// keepKeys is how long the result of a call with a key is kept, keysPerUser
	// how many keys of a user, and maxKept how large a result, as JSON. Of a
	// larger one it is kept that it was there.
	keepKeys    = 24 * time.Hour
	keysPerUser = 1000
	maxKept     = 64 * tool.KiB
)

// following says that another flight carries the call.
type following struct{ flight *Flight }

func (f *following) Error() string { return "another flight carries the call: " + f.flight.ID() }

// recall finds out whether this call was made before: because its caller was
// told to come back for the result, or because it has the same idempotency key.
// known says that the result is that of the earlier call.
func (p *Pipeline) recall(ctx context.Context, c *call) (result tool.Result, known bool, err error) {
	if c.again {
		return tool.Result{}, false, nil // it is this very call
	}
	if f := p.flights.collect(c); f != nil {
		return tool.Result{}, false, &following{f}
	}
	if c.IdempotencyKey == "" {
		return tool.Result{}, false, nil
	}
	if len(c.IdempotencyKey) > maxKey || !utf8.ValidString(c.IdempotencyKey) {
		return tool.Result{}, false, tool.Errorf(tool.InvalidArgument, "the idempotency key is not usable: expected UTF-8 of at most %d bytes", maxKey)
	}
	// The key may come from another client than the call that has it. What that one
	// got is for nobody whom the policy denies the call now.
	if decision := p.judge(c); decision.Verdict == policy.Deny {
		c.decision = decision
		p.announce(c)
		return tool.Result{}, false, denied(decision)
	}
	first, same := p.flights.claim(c)
	switch {
	case first != nil && same:
		return tool.Result{}, false, &following{first}
	case first != nil:
		return tool.Result{}, false, errOtherCall
	}
	earlier, err := p.takeKey(ctx, c)
	switch {
	case err != nil && c.tier == tool.ReadOnly: // it can be made again without harm
		p.flights.unclaim(c)
		return tool.Result{}, false, nil
	case err != nil:
		p.flights.unclaim(c)
		return tool.Result{}, false, err
	}
	if earlier.state == "" {
		c.keyed = true
		return tool.Result{}, false, nil
	}
	p.flights.unclaim(c)
	if result, known, err = earlier.answer(c); known {
		c.replay = earlier.call
	}
	if earlier.state == "started" && earlier.isOf(c) {
		return p.lostResult(ctx, c, earlier, err)
	}
	return result, known, err
}

// lostResult is the answer about an earlier call of which no result was kept
// because its host stopped: how it ended if the journal knows, else the error.
func (p *Pipeline) lostResult(ctx context.Context, c *call, earlier keyedCall, unknown error) (tool.Result, bool, error) {
	end, ok, err := p.journaledEnd(ctx, earlier.call)
	if err != nil || !ok || end.Code == string(tool.UnknownOutcome) {
		return tool.Result{}, false, unknown
	}
	c.replay = earlier.call
	return resultOf(end, "is lost, since the host stopped"), true, nil
}

// errOtherCall is what a caller reads that uses a key for two calls.
var errOtherCall = tool.Errorf(tool.Conflict, "the idempotency key was used for another call before").
	WithHint("use a new key for each call that is meant to happen")

// keyedCall is what is recorded of a call with an idempotency key.
type keyedCall struct {
	call, tool, hash string
	state            string // "admitted", "started", "ended"; "" if there is none
	result           []byte
}

// isOf reports whether the earlier call was the same as c.
func (k keyedCall) isOf(c *call) bool { return k.tool == c.entry.Spec.Name && k.hash == c.hash }

// answer is what a call with a key that was used before gets.
func (k keyedCall) answer(c *call) (tool.Result, bool, error) {
	switch {
	case !k.isOf(c):
		return tool.Result{}, false, errOtherCall
	case k.state == "started":
		return tool.Result{}, false, tool.Errorf(tool.UnknownOutcome, "the outcome of the call %s is unknown: its host stopped under it", k.call).
			WithHint("see whether it has had its effect before you make it as a new call")
	}
	result, err := k.recorded()
	return result, err == nil, err
}

// takeKey records the key as that of this call, and returns the call that has
// it already, if one has. A call that a dead host had admitted and not started
// has certainly not run, so that its key is free.
func (p *Pipeline) takeKey(ctx context.Context, c *call) (earlier keyedCall, err error) {
	now := time.Now()
	err = p.opts.Store.Do(ctx, func(tx *sql.Tx) error {
		earlier = keyedCall{}
		if _, err := tx.ExecContext(ctx, `DELETE FROM idempotency WHERE rowid IN
			(SELECT rowid FROM idempotency WHERE created < ? LIMIT 100)`, now.Add(-keepKeys).UnixMilli()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM idempotency WHERE rowid IN
			(SELECT rowid FROM idempotency WHERE user = ? AND state = 'ended' ORDER BY created DESC LIMIT 100 OFFSET ?)`,
			c.Caller.User, keysPerUser); err != nil {
			return err
		}
		row := tx.QueryRowContext(ctx, `SELECT call, tool, hash, state, result FROM idempotency
			WHERE user = ? AND key = ? AND state <> 'admitted'`, c.Caller.User, c.IdempotencyKey)
		err := row.Scan(&earlier.call, &earlier.tool, &earlier.hash, &earlier.state, &earlier.result)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO idempotency (user, key, call, tool, hash, state, created)
			VALUES (?, ?, ?, ?, ?, 'admitted', ?)`,
			c.Caller.User, c.IdempotencyKey, c.id, c.entry.Spec.Name, c.hash, now.UnixMilli())
		return err
	})
	if err != nil {
		return keyedCall{}, notWritten(ctx, "the idempotency key", err)
	}
	return earlier, nil
}

// startKey records that the call may have its effect from now on.
func (p *Pipeline) startKey(ctx context.Context, c *call) error {
	if !c.keyed {
		return nil
	}
	err := p.opts.Store.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE idempotency SET state = 'started' WHERE user = ? AND key = ? AND call = ?`,
			c.Caller.User, c.IdempotencyKey, c.id)
		return err
	})
	if err != nil {
		return notWritten(ctx, "the idempotency key", err)
	}
	return nil
}

// readmitKey records that a call with a key is as before it began: it begins
// anew.
func (p *Pipeline) readmitKey(ctx context.Context, c *call) {
	if !c.keyed {
		return
	}
	err := p.opts.Store.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE idempotency SET state = 'admitted' WHERE user = ? AND key = ? AND call = ?`,
			c.Caller.User, c.IdempotencyKey, c.id)
		return err
	})
	if err != nil { // then the key says that the outcome is unknown, which harms nobody
		p.opts.Logger.Error("an idempotency key is not given back", "call", c.id, "error", err)
	}
}

// endKey records the result of a call with a key. The key of a call that its
// plugin has certainly not seen and that may succeed later is free again.
func (p *Pipeline) endKey(ctx context.Context, c *call, result tool.Result) {
	if !c.keyed {
		return
	}
	defer p.flights.unclaim(c)
	text, err := json.Marshal(keepable(c, result))
	statement := `UPDATE idempotency SET state = 'ended', result = ? WHERE user = ? AND key = ? AND call = ?`
	args := []any{text, c.Caller.User, c.IdempotencyKey, c.id}
	if err != nil && !c.begun || !c.sent && result.Error != nil && passing(result.Error) {
		statement, args = `DELETE FROM idempotency WHERE user = ? AND key = ? AND call = ?`, args[1:]
	}
	err = p.opts.Store.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
	if err != nil {
		p.opts.Logger.Error("the result of a call with an idempotency key is not kept", "call", c.id, "error", err)
	}
}

// keepable is a result as it is kept with a key.
func keepable(c *call, result tool.Result) tool.Result {
	if size(result) <= int64(maxKept) {
		return result
	}
	note := fmt.Sprintf("[the result of %s had %s bytes and is not kept]", c.id, thousands(int(size(result))))
	kept := tool.TextResult(note)
	if facts, ok := result.Metadata[MetaWhole]; ok {
		kept = tool.TextResult((&whole{handle: c.id}).note() + note)
		kept.Metadata = map[string]any{MetaWhole: facts}
	}
	kept.Effects, kept.Error = result.Effects, result.Error
	return kept
}

// passing reports whether a call that failed like this before its plugin had it
// may succeed when it is made again.
func passing(failure *tool.Error) bool {
	if failure.Message == errRevoked.Message { // with another credential
		return true
	}
	switch failure.Code {
	case tool.RateLimited, tool.Unavailable, tool.Internal, tool.Canceled, tool.Timeout, tool.ResourceExhausted, tool.PendingApproval:
		return true
	case tool.InvalidArgument, tool.NotFound, tool.PermissionDenied, tool.Rejected, tool.Conflict, tool.PluginCrashed,
		tool.OutputInvalid, tool.UnknownOutcome, tool.Failed:
	}
	return false
}

// notWritten is what a caller reads when something that must outlive the host
// cannot be written. If ctx has ended, what has ended it is why.
func notWritten(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	hint := "the host's disk may be full"
	switch {
	case errors.Is(err, store.ErrGone):
		hint = "the host's database was removed or replaced"
	case errors.Is(err, journal.ErrChanged):
		hint = "the host's journal was changed"
	}
	return tool.Errorf(tool.Unavailable, "%s cannot be recorded, and nothing that changes something runs without a record", what).
		WithHint("%s: tell the person who runs the host", hint).WithCause(err)
}
