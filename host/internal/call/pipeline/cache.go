package pipeline

import (
	"container/list"
	"encoding/json"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxCached bounds the results that are kept to be given again.
const maxCached = 32 * tool.MiB

// cache holds results of calls that change nothing, of tools that let them be
// given again for a short time: to the same user only, of the same program, for
// the same arguments.
type cache struct {
	mu      sync.Mutex // guards everything below
	results map[cacheKey]*list.Element
	oldest  *list.List // of *cached, in the order in which they came
	bytes   tool.ByteSize
	epochs  map[cacheScope]int // how often a scope was emptied
	applied int                // how often the settings were replaced
}

// cacheKey says which calls have the same result.
type cacheKey struct {
	scope                   cacheScope
	digest, tool, arguments string
	settings                int // how often the settings were replaced
}

// cacheScope is what a call that changes something empties.
type cacheScope struct{ user, plugin string }

type cached struct {
	key    cacheKey
	until  time.Time
	result tool.Result
	size   tool.ByteSize
}

func newCache() cache {
	return cache{results: make(map[cacheKey]*list.Element), oldest: list.New(), epochs: make(map[cacheScope]int)}
}

// cached returns the result that an equal call had a short time ago.
func (p *Pipeline) cached(c *call) (tool.Result, bool) {
	if !cacheable(c) {
		return tool.Result{}, false
	}
	return p.cache.get(c)
}

// cacheable reports whether the result of a call may be given again.
func cacheable(c *call) bool {
	return c.entry.CacheTTL > 0 && c.tier == tool.ReadOnly && c.decision.Verdict == policy.Allow
}

// get returns what the cache has for a call, or notes where it stood when the
// call began.
func (s *cache) get(c *call) (tool.Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := cacheKey{
		scope:  cacheScope{c.Caller.User, c.entry.Plugin},
		digest: c.entry.Digest, tool: c.entry.Spec.Name, arguments: c.hash, settings: s.applied,
	}
	c.cacheKey = key
	c.epoch = s.epochs[key.scope]
	s.epochs[key.scope] = c.epoch // now it is known, so that a privileged call counts it up
	element := s.results[key]
	if element == nil {
		return tool.Result{}, false
	}
	kept, _ := element.Value.(*cached) // nothing else is in the list
	if !time.Now().Before(kept.until) {
		s.drop(element)
		return tool.Result{}, false
	}
	return kept.result, true
}

// keep takes up the result of a call, unless something was changed while the
// call ran, or the user was asked: another time the answer may be another one.
func (s *cache) keep(c *call, result tool.Result) {
	if result.Error != nil || !cacheable(c) || c.flight.hasAsked() {
		return
	}
	facts, err := json.Marshal(result.Metadata)
	if err != nil {
		return
	}
	kept := &cached{
		key: c.cacheKey, until: time.Now().Add(c.entry.CacheTTL), result: result,
		size: tool.ByteSize(size(result)+int64(len(facts))) + tool.KiB,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epochs[kept.key.scope] != c.epoch || s.applied != kept.key.settings || kept.size > maxCached {
		return
	}
	if old := s.results[kept.key]; old != nil {
		s.drop(old)
	}
	s.results[kept.key] = s.oldest.PushBack(kept)
	for s.bytes += kept.size; s.bytes > maxCached; {
		s.drop(s.oldest.Front())
	}
}

// empty drops what a call that changes something may have made wrong: the
// user's results of that plugin, or all of the user's if it is privileged.
func (s *cache) empty(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epochs[cacheScope{c.Caller.User, c.entry.Plugin}]++
	for scope := range s.epochs {
		if scope.user == c.Caller.User && c.tier == tool.Privileged {
			s.epochs[scope]++
		}
	}
	for key, element := range s.results {
		if key.scope.user == c.Caller.User && (key.scope.plugin == c.entry.Plugin || c.tier == tool.Privileged) {
			s.drop(element)
		}
	}
}

// reset drops everything, since other settings hold from now on.
func (s *cache) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied++
	for _, element := range s.results {
		s.drop(element)
	}
}

// drop forgets a result. s.mu is held.
func (s *cache) drop(element *list.Element) {
	kept, _ := s.oldest.Remove(element).(*cached)
	s.bytes -= kept.size
	delete(s.results, kept.key)
}
