package pipeline

import (
	"maps"
	"sync"
	"time"
)

const (
	// maxRefusals bounds the calls that are remembered since a part was refused; the
	// oldest goes first.
	maxRefusals = 1000
	// keepRefusal is how long one is remembered.
	keepRefusal = time.Hour
)

// refusals are the calls of which a part was refused when it ran: made again, they are
// asked about as a whole. The zero value is ready.
type refusals struct {
	mu    sync.Mutex // guards what follows
	byKey map[refusalKey]refusal
}

type refusalKey struct{ user, plugin, tool, arguments string }

type refusal struct {
	part string
	at   time.Time
}

func (c *call) refusalKey() refusalKey {
	return refusalKey{c.Caller.User, c.entry.Plugin, c.entry.Spec.Name, c.hash}
}

// note remembers the part of a call that was refused.
func (r *refusals) note(c *call, part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = make(map[refusalKey]refusal)
	}
	if len(r.byKey) >= maxRefusals {
		maps.DeleteFunc(r.byKey, func(_ refusalKey, old refusal) bool { return time.Since(old.at) > keepRefusal })
	}
	if len(r.byKey) >= maxRefusals {
		oldest := c.refusalKey()
		at := time.Now()
		for key, old := range r.byKey {
			if old.at.Before(at) {
				oldest, at = key, old.at
			}
		}
		delete(r.byKey, oldest)
	}
	r.byKey[c.refusalKey()] = refusal{part, time.Now()}
}

// of returns the part of an equal call that was refused, "" if there is none.
func (r *refusals) of(c *call) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.byKey[c.refusalKey()]; ok && time.Since(last.at) <= keepRefusal {
		return last.part
	}
	return ""
}
