package catalog_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/sdk/tool"
)

// foreign marks a tool as one of another program.
func foreign(s *tool.Spec) { s.Foreign = true }

// accepted returns a lock that has accepted tools of the plugin p.
func accepted(t *testing.T, specs ...tool.Spec) lock.Lock {
	t.Helper()
	l := lock.Lock{Plugins: map[string]lock.Plugin{}}
	for _, s := range specs {
		d, err := lock.Define(s)
		if err != nil {
			t.Fatal(err)
		}
		l.Accept("p", d)
	}
	return l
}

// TestLockedTools checks which tools are offered for which accepted definitions, and what is told of
// the others.
func TestLockedTools(t *testing.T) {
	t.Parallel()
	describe := func(text string) func(*tool.Spec) { return func(s *tool.Spec) { s.Description = text } }
	was := spec("a", tool.ReadOnly, foreign)
	own := spec("a", tool.ReadOnly)
	for _, tt := range []struct {
		name      string
		accepted  []tool.Spec
		published []tool.Spec
		offered   []string
		states    map[string]catalog.DefinitionState
		reason    string // of a
	}{
		{"a plugin's own tool", nil, []tool.Spec{own}, []string{"a"}, map[string]catalog.DefinitionState{"a": catalog.DefinitionNew}, ""},
		{"a new foreign tool", nil, []tool.Spec{was}, nil, map[string]catalog.DefinitionState{"a": catalog.DefinitionNew}, "has not accepted it"},
		{"an accepted one", []tool.Spec{was}, []tool.Spec{was}, []string{"a"}, map[string]catalog.DefinitionState{"a": catalog.DefinitionAccepted}, ""},
		{
			"one whose description has changed by a look-alike",
			[]tool.Spec{was},
			[]tool.Spec{spec("a", tool.ReadOnly, foreign, describe(strings.Replace(was.Description, "o", "о", 1)))},
			nil,
			map[string]catalog.DefinitionState{"a": catalog.DefinitionChanged},
			"has changed since",
		},
		{
			"one whose schema has changed",
			[]tool.Spec{was},
			[]tool.Spec{spec("a", tool.ReadOnly, foreign, func(s *tool.Spec) { s.InputSchema = json.RawMessage(`{"type":"object"}`) })},
			nil,
			map[string]catalog.DefinitionState{"a": catalog.DefinitionChanged},
			"has changed since",
		},
		{
			"a renamed one",
			[]tool.Spec{was},
			[]tool.Spec{spec("b", tool.ReadOnly, foreign)},
			nil,
			map[string]catalog.DefinitionState{"a": catalog.DefinitionGone, "b": catalog.DefinitionNew},
			"no longer has it",
		},
		{"one that is gone", []tool.Spec{was}, []tool.Spec{}, nil, map[string]catalog.DefinitionState{"a": catalog.DefinitionGone}, "no longer has it"},
		{
			"one that is no longer marked",
			[]tool.Spec{was},
			[]tool.Spec{own},
			nil,
			map[string]catalog.DefinitionState{"a": catalog.DefinitionChanged},
			"has changed since",
		},
		{
			"another tool of a locked plugin",
			[]tool.Spec{own},
			[]tool.Spec{own, spec("b", tool.ReadOnly)},
			[]string{"a"},
			map[string]catalog.DefinitionState{"a": catalog.DefinitionAccepted, "b": catalog.DefinitionNew},
			"",
		},
		{
			"one that is above the ceiling", nil,
			[]tool.Spec{spec("a", tool.Privileged, foreign)},
			nil,
			map[string]catalog.DefinitionState{},
			"is above",
		},
	} {
		c := newCatalog(t, catalog.Options{
			Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.SideEffecting, TrustClaims: true}},
			Lock:    accepted(t, tt.accepted...),
		})
		publish(t, c, "p", tt.published...)
		var offered []string
		for _, e := range c.Entries() {
			offered = append(offered, e.Spec.Name)
		}
		if diff := cmp.Diff(tt.offered, offered); diff != "" {
			t.Errorf("%s: offered (-want +got):\n%s", tt.name, diff)
		}
		review, known := c.Review("p")
		states := map[string]catalog.DefinitionState{}
		for _, d := range review.Tools {
			states[d.Tool] = d.State
		}
		if diff := cmp.Diff(tt.states, states); diff != "" || !known {
			t.Errorf("%s: known %v, states (-want +got):\n%s", tt.name, known, diff)
		}
		entry, err := c.Lookup("a")
		switch {
		case tt.reason == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.reason == "" && (entry.Definition != "") != (len(tt.accepted) > 0):
			t.Errorf("%s: definition %q", tt.name, entry.Definition)
		case tt.reason != "" && (err == nil || err.Code != tool.NotFound || !strings.Contains(err.Message, tt.reason)):
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.reason)
		}
		if pending := slices.ContainsFunc(c.Refused(), func(r catalog.Refusal) bool {
			return r.Pending && strings.Contains(r.Reason, "toolhost plugins diff p")
		}); pending !=
			slices.ContainsFunc(slices.Collect(maps.Values(tt.states)), func(s catalog.DefinitionState) bool {
				return s == catalog.DefinitionChanged || s == catalog.DefinitionNew && len(tt.offered) < len(tt.published)
			}) {
			t.Errorf("%s: pending is %v: %v", tt.name, pending, c.Refused())
		}
		if want := slices.ContainsFunc(tt.published, func(s tool.Spec) bool { return s.Foreign }); !c.Sound("p") && want && tt.reason != "is above" {
			t.Errorf("%s: its schemas are not sound", tt.name)
		}
	}
}

// TestUseLock checks that a new lock counts at once, and that the old definition needs no second
// acceptance.
func TestUseLock(t *testing.T) {
	t.Parallel()
	was := spec("a", tool.ReadOnly, foreign)
	now := spec("a", tool.ReadOnly, foreign, func(s *tool.Spec) { s.Title = "Another" })
	c := newCatalog(t, catalog.Options{
		Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.Privileged, Tools: []catalog.ToolOptions{{Name: "a"}}}},
	})
	changes, stop := c.Changed()
	defer stop()
	offersBefore := false
	offered := func(want bool) {
		t.Helper()
		_, err := c.Lookup("a")
		if (err == nil) != want || changed(changes) != (want != offersBefore) {
			t.Errorf("offered: %v, want %v", err, want)
		}
		offersBefore = want
	}
	publish(t, c, "p", was)
	offered(false)
	c.UseLock(accepted(t, was))
	offered(true)
	before := c.Basis("p").Of("a")
	publish(t, c, "p", now)
	offered(false)
	publish(t, c, "p", was)
	offered(true)
	if !before.Holds(c.Basis("p"), "a") {
		t.Error("a grant does not hold for the definition that it was given for")
	}
	publish(t, c, "p", now)
	offered(false)
	c.UseLock(accepted(t, now))
	offered(true)
	if before.Holds(c.Basis("p"), "a") {
		t.Error("a grant holds for another definition")
	}
	c.UseLock(lock.Lock{})
	offered(false)
	publish(t, c, "p") // the tool block names a tool that is unknown
	if refused := c.Refused(); len(refused) != 1 || !refused[0].Unknown {
		t.Errorf("refused %v", refused)
	}
	c.UseLock(accepted(t, was)) // the tool block names a tool that is gone
	if refused := c.Refused(); len(refused) != 1 || refused[0].Unknown || !refused[0].Gone {
		t.Errorf("refused %v", refused)
	}
}
