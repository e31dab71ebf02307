package pipeline

import (
	"strconv"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCacheForgetsUsers has more users call than the cache remembers. The result of a call that
// began before the cache has forgotten its user is not kept: a change may be forgotten, too.
func TestCacheForgetsUsers(t *testing.T) {
	entry := &catalog.Entry{Plugin: "test", CacheTTL: time.Minute}
	of := func(user string) *call {
		return &call{
			Request: Request{Caller: auth.Caller{User: user}}, entry: entry, tier: tool.ReadOnly,
			decision: policy.Decision{Verdict: policy.Allow}, operation: new(operation.Operation),
		}
	}
	s := newCache()
	slow := of("slow")
	s.get(slow)
	s.empty(of("slow"))
	for n := range 2 * maxScopes {
		quick := of(strconv.Itoa(n))
		if _, ok := s.get(quick); ok {
			t.Fatal("a first call has a cached result")
		}
		s.keep(quick, tool.TextResult("quick"))
		if _, ok := s.get(quick); !ok {
			t.Fatal("the result of a call is not kept")
		}
	}
	if len(s.epochs) > maxScopes || len(s.results) > maxScopes || s.oldest.Len() != len(s.results) {
		t.Errorf("the cache knows %d scopes and has %d results, want at most %d", len(s.epochs), len(s.results), maxScopes)
	}
	s.keep(slow, tool.TextResult("slow"))
	if _, ok := s.get(of("slow")); ok {
		t.Error("the result of a call is kept although a change was forgotten")
	}
}
