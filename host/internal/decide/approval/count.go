package approval

import (
	"context"
	"database/sql"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// errUsedUp reports that a grant has ended since the call was decided.
var errUsedUp = tool.Errorf(tool.Conflict, "A grant for the call has ended").WithHint("call again to ask")

// Use counts a use of each grant of a call that is about to run. If a grant has a limit of
// uses, its use is on disk when Use returns. If no use is left, or the use cannot be
// written, the error is [tool.Conflict] or [tool.Unavailable], and the call must not run.
func (g *Grants) Use(ctx context.Context, ids []string) error {
	now := g.now().UnixMilli()
	var bounded, others []*counted
	g.mu.RLock()
	for _, id := range ids {
		switch c := g.byID[id]; {
		case c == nil || c.over != "":
			g.mu.RUnlock()
			return errUsedUp
		case c.grant.MaxUses > 0:
			bounded = append(bounded, c)
		default:
			others = append(others, c)
		}
	}
	g.mu.RUnlock()
	if err := g.useUp(ctx, bounded, now); err != nil {
		return err
	}
	for _, c := range others {
		c.lastUsed.Store(now)
		c.uses.Add(1)
		g.again()
	}
	return nil
}

// useUp takes one use of each grant with a limit, or of none.
func (g *Grants) useUp(ctx context.Context, bounded []*counted, now int64) error {
	if len(bounded) == 0 {
		return nil
	}
	g.writing.Lock() // so that disk and memory agree
	defer g.writing.Unlock()
	err := g.store.Do(ctx, func(tx *sql.Tx) error {
		for _, c := range bounded {
			left, err := execOne(ctx, tx, "UPDATE grants SET uses = uses + 1, last_used = ? WHERE id = ? AND revoked = 0 AND uses < max_uses", now, c.grant.ID)
			if err != nil {
				return err
			}
			if !left {
				return errUsedUp
			}
		}
		return nil
	})
	if err != nil {
		return unwritten(ctx, err, "The use of a grant could not be recorded, so the call does not run")
	}
	for _, c := range bounded {
		c.written.Add(1)
	}
	return nil
}

// count writes the uses of grants a few seconds after they happen, until ctx ends, and
// then once more.
func (g *Grants) count(ctx context.Context) {
	defer close(g.stopped)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-g.used:
			select {
			case <-ctx.Done():
			case <-time.After(countEvery):
			}
		}
		// At the last time the host is stopping, and the store is still open.
		if err := g.flush(context.WithoutCancel(ctx)); err != nil {
			g.logger.Error("the uses of grants cannot be written", "error", err)
			g.again()
		}
	}
}

// again makes count write once more, later.
func (g *Grants) again() {
	select {
	case g.used <- struct{}{}:
	default:
	}
}

// flush writes the uses that are not on disk. It keeps failed ones for the next time.
func (g *Grants) flush(ctx context.Context) error {
	all := g.unwritten()
	for len(all) > 0 {
		batch := all[:min(len(all), maxBatch)]
		if err := g.add(ctx, batch); err != nil {
			return err
		}
		for _, u := range batch {
			u.uses.Add(-u.n)
		}
		all = all[len(batch):]
	}
	return nil
}

// unwrittenUses are uses of a grant that are not on disk.
type unwrittenUses struct {
	*counted
	n int64
}

// unwritten returns the uses to write. It removes grants that have ended and have no
// such uses.
func (g *Grants) unwritten() []unwrittenUses {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []unwrittenUses
	for id, c := range g.byID {
		n := c.uses.Load()
		switch {
		case n > 0:
			all = append(all, unwrittenUses{c, n})
		case c.over != "":
			delete(g.byID, id)
		}
	}
	return all
}

// add writes uses, and deletes grants that ended long ago. It deletes a grant for a
// session when it is old, since the session may have ended at any time.
func (g *Grants) add(ctx context.Context, batch []unwrittenUses) error {
	old := sql.Named("old", g.now().Add(-keepEnded).UnixMilli())
	return g.store.Do(ctx, func(tx *sql.Tx) error {
		for _, u := range batch {
			if _, err := tx.ExecContext(ctx, "UPDATE grants SET uses = uses + ?, last_used = max(last_used, ?) WHERE id = ?",
				u.n, u.lastUsed.Load(), u.grant.ID); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM grants WHERE revoked > 0 AND revoked < :old OR expires > 0 AND expires < :old
			OR max_uses > 0 AND uses >= max_uses AND last_used < :old OR session <> '' AND max(created, last_used) < :old`, old)
		return err
	})
}
