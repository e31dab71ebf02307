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
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// offers remembers the last offer of each plugin, across restarts. When a program, a tool, its
// tier, schema or description changes, it reports the change to the log, the journal and the
// list of plugins.
type offers struct {
	store   *store.Store
	journal *journal.Journal
	logger  hclog.Logger
	// waits is told when other definitions of a plugin wait to be accepted.
	waits func(plugin string, definitions int)

	mu      sync.Mutex // guards the following
	last    map[string]offer
	refused map[catalog.Refusal]bool // refusals that were logged
}

// offer is the program and the tools of a plugin, and its last change.
type offer struct {
	basis  catalog.Basis
	change httpapi.PluginChange
}

// readOffers reads the offers that earlier hosts recorded.
func readOffers(ctx context.Context, s *store.Store, j *journal.Journal, logger hclog.Logger) (*offers, error) {
	o := &offers{store: s, journal: j, logger: logger, last: make(map[string]offer), refused: make(map[catalog.Refusal]bool)}
	rows, err := s.Read().QueryContext(ctx, "SELECT plugin, basis, changes, changed FROM offers")
	if err != nil {
		return nil, fmt.Errorf("read the last offers of plugins: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, basis, changes string
		var changed int64
		if err := rows.Scan(&name, &basis, &changes, &changed); err != nil {
			return nil, fmt.Errorf("read the last offers of plugins: %w", err)
		}
		var seen offer
		if err := errors.Join(json.Unmarshal([]byte(basis), &seen.basis), json.Unmarshal([]byte(changes), &seen.change.Changes)); err != nil {
			logger.Error("the record of a plugin's last offer is damaged", "plugin", name, "error", err)
			continue
		}
		if changed > 0 {
			seen.change.Since = time.UnixMilli(changed).UTC()
		}
		o.last[name] = seen
	}
	return o, rows.Err()
}

// reserve reserves the last names of plugins' tools until the plugins have started.
func (o *offers) reserve(plugins []catalog.Plugin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range plugins {
		plugins[i].Reserved = slices.Sorted(maps.Keys(o.last[plugins[i].Name].basis.Tools))
	}
}

// look compares the catalog with the last offers, reports changes, and records them.
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
			o.logger.Error("a plugin's offer cannot be recorded", "plugin", name, "error", err)
		}
	}
}

// tellRefused logs each refusal of a name that another tool has, once. The configuration
// causes all other refusals.
func (o *offers) tellRefused(refusals []catalog.Refusal) {
	now := make(map[catalog.Refusal]bool)
	for _, r := range refusals {
		if now[r] = true; !o.refused[r] && r.Taken {
			o.logger.Warn("a tool is refused", "plugin", r.Plugin, "tool", r.Tool, "reason", r.Reason)
		}
	}
	o.refused = now
}

// compare reports the changes of one plugin. A failure is reported once: the next comparison
// uses the offer in memory, and a restarted host the one on disk.
func (o *offers) compare(ctx context.Context, name string, now catalog.Basis) error {
	before, known := o.last[name]
	changes := before.basis.Changes(now)
	waiting := len(now.Pending) > 0 && !maps.Equal(before.basis.Pending, now.Pending)
	if waiting {
		o.waits(name, len(now.Pending))
	}
	if !known { // all that a new plugin offers is new
		changes = catalog.Basis{Program: now.Program, Tools: now.Tools}.Changes(now)
	}
	if known && len(changes) == 0 && maps.Equal(before.basis.Pending, now.Pending) {
		return nil
	}
	next := offer{basis: now, change: before.change}
	var errs []error
	if len(changes) > 0 {
		next.change = httpapi.PluginChange{Since: time.Now().UTC().Truncate(time.Millisecond), Changes: changes}
		for _, change := range changes {
			o.logger.Warn("a plugin has changed", "plugin", name, "change", change)
			errs = append(errs, o.journal.Change(ctx, name, now.Program, change))
		}
	}
	o.last[name] = next
	return errors.Join(append(errs, o.save(ctx, name, next))...)
}

// save records an offer.
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

// changes returns the last change of each plugin that has changed.
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

// watcher publishes an event when the offered tools change.
type watcher struct {
	poked   chan struct{} // holds one
	stopped chan struct{}
	running sync.WaitGroup
}

// watch watches a catalog. It calls changed when the offered tools change, and look then and
// after each poke. The caller must stop it.
func watch(c *catalog.Catalog, events *event.Bus, changed, look func()) *watcher {
	w := &watcher{poked: make(chan struct{}, 1), stopped: make(chan struct{})}
	changes, unsubscribe := c.Changed()
	w.running.Go(func() { // ends with stop
		defer unsubscribe()
		for {
			select {
			case <-changes:
				events.Publish("", event.CatalogChanged{Tools: len(c.Entries())})
				changed()
				look()
			case <-w.poked:
				look()
			case <-w.stopped:
				look() // for an earlier poke
				return
			}
		}
	})
	return w
}

// poke makes the watcher call look. It does not wait.
func (w *watcher) poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// stop returns when the watcher has ended.
func (w *watcher) stop() error {
	close(w.stopped)
	w.running.Wait()
	return nil
}
