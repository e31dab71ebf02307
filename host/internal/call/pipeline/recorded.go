package pipeline

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Recorded returns how a call of a user ended that [Pipeline.Flight] does not
// know any more: its result if that was kept with an idempotency key, else what
// the journal says. If nothing says how it ended, the error is
// [tool.UnknownOutcome].
func (p *Pipeline) Recorded(ctx context.Context, user, id string) (tool.Result, error) {
	if result, ok, err := p.keptResult(ctx, user, id); ok || err != nil {
		return result, err
	}
	end, ok, err := p.journaledEnd(ctx, id)
	switch {
	case err != nil:
		return tool.Result{}, err
	case !ok || end.User != user:
		return tool.Result{}, tool.Errorf(tool.UnknownOutcome, "the outcome of the call %s is unknown: no record says how it ended", id).
			WithHint("see whether it has had its effect before you make it again")
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
		result = tool.TextResult((&whole{handle: id}).note() + fmt.Sprintf("[%s ended well]", id))
	}
	return result, nil
}

// keepsWhole reports whether the whole of a long result can be read.
func (p *Pipeline) keepsWhole(user, id string) bool {
	if p.opts.Results == nil {
		return false
	}
	r, err := p.opts.Results.Find(user, id)
	if err != nil {
		return false
	}
	_ = r.Close() // nothing was written
	return true
}

// keptResult returns the result of a call that was kept with its idempotency
// key.
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

// recorded is the result that was kept of a call.
func (k keyedCall) recorded() (tool.Result, error) {
	var result tool.Result
	if err := json.Unmarshal(k.result, &result); err != nil {
		return tool.Result{}, fmt.Errorf("read the recorded result of %s: %w", k.call, err)
	}
	return result, nil
}

// journaledEnd returns the journal's row about the end of a call, if there is
// one.
func (p *Pipeline) journaledEnd(ctx context.Context, id string) (end journal.Record, ok bool, err error) {
	rows, err := p.opts.Journal.Query(ctx, journal.Query{Call: id, Limit: 1})
	if err != nil || len(rows) == 0 {
		return journal.Record{}, false, err
	}
	return rows[0], rows[0].Kind == journal.End, nil
}

// resultOf makes a result of what the journal says about the end of a call;
// lost says what became of the result that it had.
func resultOf(end journal.Record, lost string) tool.Result {
	if end.Code == "" {
		return tool.TextResult(fmt.Sprintf("[%s ended well; its result %s]", end.Call, lost))
	}
	message, _, _ := strings.Cut(end.Error, causeMark)
	return tool.ErrorResult(tool.Errorf(tool.Code(end.Code), "%s", message))
}
