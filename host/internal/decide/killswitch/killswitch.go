// Package killswitch keeps the stops of admins: while a stop is in force, no call that it covers
// begins. Stops outlive the host.
//
// A stop holds in memory before it is on disk, unlike everything else that the host keeps: it must
// hold at once, even if the disk is full. It ends on disk first.
package killswitch

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxStops bounds the stops in force.
const maxStops = 1000

// Switch holds the stops in force. Its methods may be called from any goroutine.
type Switch struct {
	store *store.Store

	writing sync.Mutex             // held across a change on disk and in memory; taken before mu
	mu      sync.Mutex             // held while stops is replaced
	stops   atomic.Pointer[[]Stop] // the oldest first; never changed in place
}

// New returns the stops in a store. ctx bounds New only.
func New(ctx context.Context, db *store.Store) (*Switch, error) {
	if db == nil {
		return nil, errors.New("kill switch: no store is given")
	}
	rows, err := db.Read().QueryContext(ctx, "SELECT id, user, plugin, reason, by, since FROM stops ORDER BY since, id")
	if err != nil {
		return nil, fmt.Errorf("read the stops: %w", err)
	}
	defer rows.Close()
	var stops []Stop
	for rows.Next() {
		var stop Stop
		var since int64
		if err := rows.Scan(&stop.ID, &stop.User, &stop.Plugin, &stop.Reason, &stop.By, &since); err != nil {
			return nil, fmt.Errorf("read the stops: %w", err)
		}
		stop.Since = time.UnixMilli(since).UTC()
		stops = append(stops, stop)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the stops: %w", err)
	}
	s := &Switch{store: db}
	s.stops.Store(&stops)
	return s, nil
}

// List returns the stops in force, the oldest first.
func (s *Switch) List() []Stop { return slices.Clone(*s.stops.Load()) }

// Covering returns the oldest stop that covers the calls of a user to a plugin; see
// [Scope.Covers]. It does no I/O and never waits.
func (s *Switch) Covering(user, plugin string) (Stop, bool) {
	stops := *s.stops.Load()
	i := slices.IndexFunc(stops, func(stop Stop) bool { return stop.Covers(user, plugin) })
	if i < 0 {
		return Stop{}, false
	}
	return stops[i], true
}

// Set puts a stop in force, in memory only: [Switch.Save] must follow. It does no I/O. If there is a
// stop of this scope, Set returns that one, unchanged, and fresh is false.
func (s *Switch) Set(scope Scope, reason, by string) (stop Stop, fresh bool, err error) {
	if err := check(scope, reason); err != nil {
		return Stop{}, false, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Stop{}, false, fmt.Errorf("make the id of a stop: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stops := *s.stops.Load()
	if i := slices.IndexFunc(stops, func(other Stop) bool { return other.Scope == scope }); i >= 0 {
		return stops[i], false, nil
	}
	if len(stops) >= maxStops {
		return Stop{}, false, tool.Errorf(tool.ResourceExhausted, "%d stops are in force already, which is the most", maxStops).
			WithHint("stop everything, or resume what need not be stopped")
	}
	stop = Stop{Scope: scope, ID: "st_" + id.String(), Reason: reason, By: by, Since: time.Now().UTC().Truncate(time.Millisecond)}
	more := append(slices.Clone(stops), stop)
	s.stops.Store(&more)
	return stop, true, nil
}

// Save writes a stop, so that it outlives the host. It does nothing for one that is on disk, or that
// has ended.
func (s *Switch) Save(ctx context.Context, id string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	stop, ok := s.find(id)
	if !ok {
		return nil
	}
	err := s.store.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO stops (id, user, plugin, reason, by, since) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO NOTHING`, stop.ID, stop.User, stop.Plugin, stop.Reason, stop.By, stop.Since.UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("write the stop: %w", err)
	}
	return nil
}

// Resume ends a stop, durably, and returns it. If there is none with the id, the error is
// [tool.NotFound]. After any other error, the stop is still in force.
func (s *Switch) Resume(ctx context.Context, id string) (Stop, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	stop, ok := s.find(id)
	if !ok {
		return Stop{}, tool.Errorf(tool.NotFound, "no stop %s is in force", tool.VisibleName(excerpt.Of(id, maxName)))
	}
	err := s.store.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM stops WHERE id = ?", id)
		return err
	})
	if err != nil {
		return Stop{}, tool.Errorf(tool.Unavailable, "the end of the stop %s could not be recorded, so it is still in force", id).
			WithCause(err).WithHint("the host's state directory cannot be written; the host's log has the reason")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fewer := slices.DeleteFunc(s.List(), func(other Stop) bool { return other.ID == id })
	s.stops.Store(&fewer)
	return stop, nil
}

// find returns the stop with an id.
func (s *Switch) find(id string) (Stop, bool) {
	stops := *s.stops.Load()
	i := slices.IndexFunc(stops, func(stop Stop) bool { return stop.ID == id })
	if i < 0 {
		return Stop{}, false
	}
	return stops[i], true
}
