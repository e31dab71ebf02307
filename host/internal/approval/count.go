package approval

import (
	"context"
	"database/sql"
	"time"
)

// count writes the uses of grants, some seconds after them, until ctx ends; and
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
		// The last time, the host is stopping and the store is still open.
		if err := g.flush(context.WithoutCancel(ctx)); err != nil {
			g.logger.Error("the uses of grants cannot be written", "error", err)
			g.again()
		}
	}
}

// again makes the counter write once more, later.
func (g *Grants) again() {
	select {
	case g.used <- struct{}{}:
	default:
	}
}

// flush writes the uses that are not on disk. Those that cannot be written are
// kept for the next time.
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

// unwritten returns the uses to write, and forgets the grants that were revoked
// and have none.
func (g *Grants) unwritten() []unwrittenUses {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []unwrittenUses
	for id, c := range g.byID {
		n := c.uses.Load()
		switch {
		case n > 0:
			all = append(all, unwrittenUses{c, n})
		case g.covers[c.grant.key()] != c:
			delete(g.byID, id)
		}
	}
	return all
}

// add writes uses, and removes grants that were revoked long ago.
func (g *Grants) add(ctx context.Context, batch []unwrittenUses) error {
	old := g.now().Add(-keepRevoked).UnixMilli()
	return g.store.Do(ctx, func(tx *sql.Tx) error {
		for _, u := range batch {
			if _, err := tx.ExecContext(ctx, "UPDATE grants SET uses = uses + ?, last_used = max(last_used, ?) WHERE id = ?",
				u.n, u.lastUsed.Load(), u.grant.ID); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM grants WHERE revoked > 0 AND revoked < ?", old)
		return err
	})
}
