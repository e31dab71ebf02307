package pipeline

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxKey bounds an idempotency key, in bytes.
	maxKey = 200
	// keepKeys is how long the result of a call with a key is kept. keysPerUser is how many
	// keys are kept for each user. maxKept is the largest result that is kept; a note replaces
	// a larger one.
	keepKeys    = 24 * time.Hour
	keysPerUser = 1000
	maxKept     = 64 * tool.KiB
)

// replay looks for an earlier run of this call: its caller was told to repeat it for the
// result, or it has the same idempotency key. known reports that result is that of the earlier
// call.
func (p *Pipeline) replay(ctx context.Context, c *call) (result tool.Result, known bool, err error) {
	if c.restarted {
		return tool.Result{}, false, nil // this is that call, started again
	}
	if earlier := p.operations.FindRetried(c.operation, c.entry.Spec.Name, c.hash); earlier != nil {
		return tool.Result{}, false, &joinError{earlier}
	}
	if c.IdempotencyKey == "" {
		return tool.Result{}, false, nil
	}
	if len(c.IdempotencyKey) > maxKey || !utf8.ValidString(c.IdempotencyKey) {
		return tool.Result{}, false, tool.Errorf(tool.InvalidArgument, "the idempotency key is not usable: expected UTF-8 of at most %d bytes", maxKey)
	}
	// Another client may have used the key before. If the policy now denies this caller the
	// call, it must not get that client's result.
	if decision := p.decision(c); decision.Verdict == policy.Deny {
		c.decision = decision
		p.announce(c)
		return tool.Result{}, false, denied(decision)
	}
	first, same := p.operations.Claim(c.operation, c.IdempotencyKey)
	switch {
	case first != nil && same:
		return tool.Result{}, false, &joinError{first}
	case first != nil:
		return tool.Result{}, false, errOtherCall
	}
	earlier, err := p.takeKey(ctx, c)
	switch {
	case err != nil && c.tier == tool.ReadOnly: // harmless to repeat
		p.operations.Unclaim(c.operation, c.IdempotencyKey)
		return tool.Result{}, false, nil
	case err != nil:
		p.operations.Unclaim(c.operation, c.IdempotencyKey)
		return tool.Result{}, false, err
	}
	if earlier.state == "" {
		c.keyed = true
		return tool.Result{}, false, nil
	}
	p.operations.Unclaim(c.operation, c.IdempotencyKey)
	if result, known, err = earlier.answer(c); known {
		c.replayed = earlier.call
	}
	if earlier.state == "started" && earlier.isOf(c) {
		return p.lostResult(ctx, c, earlier, err)
	}
	return result, known, err
}

// lostResult answers for an earlier call whose result was lost when its host stopped. It
// returns the call's end in the journal, or the error unknown if the journal has none.
func (p *Pipeline) lostResult(ctx context.Context, c *call, earlier keyedCall, unknown error) (tool.Result, bool, error) {
	end, ok, err := p.journaledEnd(ctx, earlier.call)
	if err != nil || !ok || end.Code == string(tool.UnknownOutcome) {
		return tool.Result{}, false, unknown
	}
	c.replayed = earlier.call
	return resultOf(end, "is lost, since the host stopped"), true, nil
}

// keyedCall is the record of a call with an idempotency key.
type keyedCall struct {
	call, tool, hash string
	state            string // "admitted", "started", "ended"; "" if there is no record
	result           []byte
}

// isOf reports whether the earlier call equals c.
func (k keyedCall) isOf(c *call) bool { return k.tool == c.entry.Spec.Name && k.hash == c.hash }

// answer returns the result of the earlier call to c, which has the same key.
func (k keyedCall) answer(c *call) (tool.Result, bool, error) {
	switch {
	case !k.isOf(c):
		return tool.Result{}, false, errOtherCall
	case k.state == "started":
		return tool.Result{}, false, tool.Errorf(tool.UnknownOutcome, "the outcome of the call %s is unknown: its host stopped while it ran", k.call).
			WithHint("check whether it took effect before you make it as a new call")
	}
	result, err := k.recorded()
	return result, err == nil, err
}

// takeKey records the key for this call. If another call has the key, takeKey returns that
// call. If that call belonged to an earlier host and was never started, it has not run, and
// its key is free.
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

// startKey records that the call may have effects from now on.
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

// resetKey records that a call with a key starts again and has had no effect.
func (p *Pipeline) resetKey(ctx context.Context, c *call) {
	if !c.keyed {
		return
	}
	err := p.opts.Store.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE idempotency SET state = 'admitted' WHERE user = ? AND key = ? AND call = ?`,
			c.Caller.User, c.IdempotencyKey, c.id)
		return err
	})
	if err != nil { // then the key reports an unknown outcome, which is safe
		p.opts.Logger.Error("an idempotency key is not reset", "call", c.id, "error", err)
	}
}

// endKey records the result of a call with a key. If the plugin has certainly not seen the
// call and the call may succeed later, or if an admin stopped a read, endKey frees the key.
func (p *Pipeline) endKey(ctx context.Context, c *call, result tool.Result) {
	if !c.keyed {
		return
	}
	defer p.operations.Unclaim(c.operation, c.IdempotencyKey)
	text, err := json.Marshal(keepable(c, result))
	statement := `UPDATE idempotency SET state = 'ended', result = ? WHERE user = ? AND key = ? AND call = ?`
	args := []any{text, c.Caller.User, c.IdempotencyKey, c.id}
	if err != nil && !c.begun || result.Error != nil && mayRepeat(c, result.Error) {
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

// mayRepeat reports whether a call with a key that failed may run again with the same key.
func mayRepeat(c *call, failure *tool.Error) bool {
	if c.tier == tool.ReadOnly && errors.Is(failure, killswitch.ErrStopped) {
		return true // after resume
	}
	return !c.sent && temporary(failure)
}

// keepable returns a result in the form that is kept with a key.
func keepable(c *call, result tool.Result) tool.Result {
	if operation.Size(result) <= int64(maxKept) {
		return result
	}
	note := fmt.Sprintf("[the result of %s had %s bytes and is not kept]", c.id, thousands(int(operation.Size(result))))
	kept := tool.TextResult(note)
	if facts, ok := result.Metadata[MetaWhole]; ok {
		kept = tool.TextResult((&spilled{handle: c.id}).note() + note)
		kept.Metadata = map[string]any{MetaWhole: facts}
	}
	kept.Effects, kept.Error = result.Effects, result.Error
	return kept
}

// temporary reports whether a call that failed before its plugin received it may succeed
// later.
func temporary(failure *tool.Error) bool {
	if failure.Message == operation.ErrRevoked.Message { // it may succeed with another credential
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

// ErrNoRecord reports that there is no record of a user's call.
var ErrNoRecord = errors.New("no record of the call")

// Recorded returns the outcome of a user's call that [operation.Registry.Find] no longer
// finds: its result if that was kept with an idempotency key, or its end in the journal. The
// error has code [tool.UnknownOutcome] if the journal has only its start; if there is no
// record of the call, it is [ErrNoRecord].
func (p *Pipeline) Recorded(ctx context.Context, user, id string) (tool.Result, error) {
	if result, ok, err := p.keptResult(ctx, user, id); ok || err != nil {
		return result, err
	}
	end, ok, err := p.journaledEnd(ctx, id)
	switch {
	case err != nil:
		return tool.Result{}, err
	case !ok || end.User != user:
		unknown := tool.Errorf(tool.UnknownOutcome, "the outcome of the call %s is unknown: no record says how it ended", id).
			WithHint("see whether it has had its effect before you make it again")
		if end.User != user {
			unknown = unknown.WithCause(ErrNoRecord)
		}
		return tool.Result{}, unknown
	}
	result := resultOf(end, "is not kept")
	switch {
	case result.Error != nil:
		hint := "the call %s ended like this; make it again if it is still wanted"
		if result.Error.Code == tool.UnknownOutcome {
			hint = "see whether the call %s has had its effect before you make it again"
		}
		result.Error = result.Error.WithHint(hint, id)
	case p.keepsWhole(user, id):
		result = tool.TextResult((&spilled{handle: id}).note() + fmt.Sprintf("[%s ended well]", id))
	}
	return result, nil
}

// keepsWhole reports whether the complete result of a call can still be read.
func (p *Pipeline) keepsWhole(user, id string) bool {
	if p.opts.Results == nil {
		return false
	}
	r, err := p.opts.Results.Find(user, id)
	if err != nil {
		return false
	}
	_ = r.Close() // opened for reading only
	return true
}

// keptResult returns the result that was kept with a call's idempotency key.
func (p *Pipeline) keptResult(ctx context.Context, user, id string) (result tool.Result, ok bool, err error) {
	kept := keyedCall{call: id}
	err = p.opts.Store.Read().QueryRowContext(ctx, `SELECT result FROM idempotency
		WHERE user = ? AND call = ? AND state = 'ended'`, user, id).Scan(&kept.result)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return tool.Result{}, false, nil
	case err != nil:
		return tool.Result{}, false, fmt.Errorf("read the result of %s: %w", id, err)
	}
	result, err = kept.recorded()
	return result, err == nil, err
}

// recorded returns the kept result of a call.
func (k keyedCall) recorded() (tool.Result, error) {
	var result tool.Result
	if err := json.Unmarshal(k.result, &result); err != nil {
		return tool.Result{}, fmt.Errorf("read the recorded result of %s: %w", k.call, err)
	}
	return result, nil
}

// journaledEnd returns the journal's latest record of a call, and whether that is its end.
func (p *Pipeline) journaledEnd(ctx context.Context, id string) (end journal.Record, ok bool, err error) {
	rows, err := p.opts.Journal.Query(ctx, journal.Query{Call: id, Limit: 1})
	if err != nil || len(rows) == 0 {
		return journal.Record{}, false, err
	}
	return rows[0], rows[0].Kind == journal.End, nil // the latest one
}

// resultOf makes a result from the journal's record of a call's end. lost says why the
// original result is missing, as a predicate: "is not kept".
func resultOf(end journal.Record, lost string) tool.Result {
	if end.Code == "" {
		return tool.TextResult(fmt.Sprintf("[%s ended well; its result %s]", end.Call, lost))
	}
	message, _, _ := strings.Cut(end.Error, causeMark)
	return tool.ErrorResult(tool.Errorf(tool.Code(end.Code), "%s", message))
}
