package daemon

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// offers remembers what each plugin offered last, across restarts. It tells the log, the
// journal and the list of plugins when a program, a tool, its tier, schema or description
// has changed.
type offers struct {
	store   *store.Store
	journal *journal.Journal
	logger  hclog.Logger

	mu      sync.Mutex // guards what follows
	last    map[string]offer
	refused map[catalog.Refusal]bool // that the log tells
}

// offer is what a plugin offered last.
type offer struct {
	basis  catalog.Basis
	change httpapi.PluginChange
}

// readOffers returns what earlier hosts have seen.
func readOffers(ctx context.Context, s *store.Store, j *journal.Journal, logger hclog.Logger) (*offers, error) {
	o := &offers{store: s, journal: j, logger: logger, last: make(map[string]offer), refused: make(map[catalog.Refusal]bool)}
	rows, err := s.Read().QueryContext(ctx, "SELECT plugin, basis, changes, changed FROM offers")
	if err != nil {
		return nil, fmt.Errorf("read what plugins offered: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, basis, changes string
		var changed int64
		if err := rows.Scan(&name, &basis, &changes, &changed); err != nil {
			return nil, fmt.Errorf("read what plugins offered: %w", err)
		}
		var seen offer
		if err := errors.Join(json.Unmarshal([]byte(basis), &seen.basis), json.Unmarshal([]byte(changes), &seen.change.Changes)); err != nil {
			logger.Error("what a plugin offered last is damaged", "plugin", name, "error", err)
			continue
		}
		if changed > 0 {
			seen.change.Since = time.UnixMilli(changed).UTC()
		}
		o.last[name] = seen
	}
	return o, rows.Err()
}

// reserve keeps the names that plugins had last for them until they have started.
func (o *offers) reserve(plugins []catalog.Plugin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range plugins {
		plugins[i].Reserved = slices.Sorted(maps.Keys(o.last[plugins[i].Name].basis.Tools))
	}
}

// look compares what the catalog offers with what plugins offered last, tells what has
// changed, and remembers it.
func (o *offers) look(ctx context.Context, c *catalog.Catalog) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tellRefused(c.Refused())
	bases := c.Bases()
	for _, name := range slices.Sorted(maps.Keys(bases)) {
		if name == catalog.HostPlugin {
			continue
		}
		if err := o.compare(ctx, name, bases[name]); err != nil {
			o.logger.Error("what a plugin offers is not recorded", "plugin", name, "error", err)
		}
	}
}

// tellRefused logs names that belong to another tool and are not in the log yet. Other
// refusals are what the configuration wants.
func (o *offers) tellRefused(refusals []catalog.Refusal) {
	now := make(map[catalog.Refusal]bool)
	for _, r := range refusals {
		if now[r] = true; !o.refused[r] && r.Taken {
			o.logger.Warn("a tool is refused", "plugin", r.Plugin, "tool", r.Tool, "reason", r.Reason)
		}
	}
	o.refused = now
}

// compare tells what has changed of one plugin. A failure is told once: what is in memory
// is compared next time, what is on disk after a restart.
func (o *offers) compare(ctx context.Context, name string, now catalog.Basis) error {
	before, known := o.last[name]
	changes := before.basis.Changes(now)
	if known && len(changes) == 0 {
		return nil
	}
	next := offer{basis: now, change: before.change}
	var errs []error
	if known {
		next.change = httpapi.PluginChange{Since: time.Now().UTC().Truncate(time.Millisecond), Changes: changes}
		for _, change := range changes {
			o.logger.Warn("a plugin is not as it was", "plugin", name, "change", change)
			errs = append(errs, o.journal.Change(ctx, name, now.Program, change))
		}
	}
	o.last[name] = next
	return errors.Join(append(errs, o.save(ctx, name, next))...)
}

// save writes what a plugin offers.
func (o *offers) save(ctx context.Context, name string, seen offer) error {
	basis, err := json.Marshal(seen.basis)
	if err != nil {
		return err
	}
	changes, err := json.Marshal(seen.change.Changes)
	if err != nil {
		return err
	}
	changed := int64(0)
	if !seen.change.Since.IsZero() {
		changed = seen.change.Since.UnixMilli()
	}
	return o.store.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO offers (plugin, basis, changes, changed) VALUES (?, ?, ?, ?)
			ON CONFLICT (plugin) DO UPDATE SET basis = excluded.basis, changes = excluded.changes, changed = excluded.changed`,
			name, string(basis), string(changes), changed)
		return err
	})
}

// changes returns the last changes of each plugin that has changed.
func (o *offers) changes() map[string]httpapi.PluginChange {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[string]httpapi.PluginChange)
	for name, seen := range o.last {
		if !seen.change.Since.IsZero() {
			all[name] = seen.change
		}
	}
	return all
}
