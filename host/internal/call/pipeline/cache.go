package pipeline

import (
	"container/list"
	"encoding/json"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxCached bounds the size of all cached results.
	maxCached = 32 * tool.MiB
	// maxScopes bounds the scopes whose epochs are known. Beyond it, everything is forgotten.
	maxScopes = 10_000
)

// cache keeps results of read-only calls for a short time, for tools that declare it. It
// returns a result only to the same user, for the same program and arguments.
type cache struct {
	mu      sync.Mutex // guards the fields below
	results map[cacheKey]*list.Element
	oldest  *list.List // of *cached, the oldest first
	bytes   tool.ByteSize
	epochs  map[cacheScope]int // how often each scope was emptied
	resets  int                // how often everything was forgotten, such as when the settings were replaced
}

// cacheKey identifies calls with the same result.
type cacheKey struct {
	scope                   cacheScope
	digest, tool, arguments string
	resets                  int // when the call looked for it
	presentation            Presentation
}

// cacheScope is the part of the cache that a call empties if it changes something.
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

// cached returns the cached result of an equal call.
func (p *Pipeline) cached(c *call) (tool.Result, bool) {
	if !cacheable(c) {
		return tool.Result{}, false
	}
	return p.cache.get(c)
}

// cacheable reports whether the result of a call may be cached.
func cacheable(c *call) bool {
	return c.entry.CacheTTL > 0 && c.tier == tool.ReadOnly && c.decision.Verdict == policy.Allow
}

// get returns the cached result of a call. If there is none, it records the current epoch in
// the call.
func (s *cache) get(c *call) (tool.Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scope := cacheScope{c.Caller.User, c.entry.Plugin}
	s.know(scope)
	key := cacheKey{
		scope:  scope,
		digest: c.entry.Digest, tool: c.entry.Spec.Name, arguments: c.hash, resets: s.resets, presentation: c.Presentation,
	}
	c.cacheKey = key
	c.epoch = s.epochs[scope]
	element := s.results[key]
	if element == nil {
		return tool.Result{}, false
	}
	kept, _ := element.Value.(*cached) // the list contains nothing else
	if !time.Now().Before(kept.until) {
		s.drop(element)
		return tool.Result{}, false
	}
	return kept.result, true
}

// keep caches the result of a call. It does not if something changed while the call ran, or if
// the tool asked its user, whose next answer may differ.
func (s *cache) keep(c *call, result tool.Result) {
	if result.Error != nil || !cacheable(c) || c.operation.HasAsked() {
		return
	}
	facts, err := json.Marshal(result.Metadata)
	if err != nil {
		return
	}
	kept := &cached{
		key: c.cacheKey, until: time.Now().Add(c.entry.CacheTTL), result: result,
		size: tool.ByteSize(operation.Size(result)+int64(len(facts))) + tool.KiB,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epochs[kept.key.scope] != c.epoch || s.resets != kept.key.resets || kept.size > maxCached {
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

// empty drops the results that a change may have made outdated: the user's results of that
// plugin, or all of the user's results if the call is privileged.
func (s *cache) empty(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := cacheScope{c.Caller.User, c.entry.Plugin}
	s.know(changed)
	s.epochs[changed]++
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

// reset drops all results because the settings were replaced.
func (s *cache) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
}

// know adds a scope, so that a privileged call increments its epoch. If there are too many, it forgets
// everything. The caller holds s.mu.
func (s *cache) know(scope cacheScope) {
	epoch, known := s.epochs[scope]
	if !known && len(s.epochs) >= maxScopes {
		s.forget()
	}
	s.epochs[scope] = epoch
}

// forget drops all results, and those of calls that run. The caller holds s.mu.
func (s *cache) forget() {
	s.resets++
	clear(s.epochs)
	for _, element := range s.results {
		s.drop(element)
	}
}

// drop removes a result. The caller holds s.mu.
func (s *cache) drop(element *list.Element) {
	kept, _ := s.oldest.Remove(element).(*cached)
	s.bytes -= kept.size
	delete(s.results, kept.key)
}
