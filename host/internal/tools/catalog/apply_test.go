package catalog_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// changed reports whether a change waits, and takes it.
func changed(changes <-chan struct{}) bool {
	select {
	case <-changes:
		return true
	default:
		return false
	}
}

func TestApply(t *testing.T) {
	before := func() []catalog.Plugin {
		return []catalog.Plugin{
			{Name: "p", Ceiling: tool.Privileged, TrustClaims: true},
			{Name: "q", Ceiling: tool.ReadOnly},
		}
	}
	rule := func(o catalog.ToolOptions) func([]catalog.Plugin) []catalog.Plugin {
		return func(plugins []catalog.Plugin) []catalog.Plugin {
			o.Name = "read"
			plugins[0].Tools = []catalog.ToolOptions{o}
			return plugins
		}
	}
	for _, tt := range []struct {
		name    string
		change  func([]catalog.Plugin) []catalog.Plugin
		want    []string
		same    []string // tools that keep their entry
		changed bool
		check   func(read *catalog.Entry) bool // nil accepts any
	}{
		{"nothing", func(p []catalog.Plugin) []catalog.Plugin { return p }, []string{"q/list", "p/read", "p/wipe"}, []string{"list", "read", "wipe"}, false, nil},
		{
			"a lower ceiling", func(p []catalog.Plugin) []catalog.Plugin { p[0].Ceiling = tool.ReadOnly; return p },
			[]string{"q/list", "p/read"},
			[]string{"list"},
			true,
			func(read *catalog.Entry) bool { return read.Tier == tool.ReadOnly },
		},
		{
			"no trust", func(p []catalog.Plugin) []catalog.Plugin { p[0].TrustClaims = false; return p },
			[]string{"q/list", "p/read", "p/wipe"},
			[]string{"list"},
			true,
			func(read *catalog.Entry) bool { return read.Tier == tool.Privileged },
		},
		{"a tool rule that says nothing", rule(catalog.ToolOptions{}), []string{"q/list", "p/read", "p/wipe"}, []string{"list", "read", "wipe"}, false, nil},
		{
			"a tool's time-out", rule(catalog.ToolOptions{Timeout: time.Minute / 2}),
			[]string{"q/list", "p/read", "p/wipe"},
			[]string{"list", "wipe"},
			true,
			func(read *catalog.Entry) bool { return read.Timeout == time.Minute/2 },
		},
		{
			"a tool's alias", rule(catalog.ToolOptions{Aliases: []string{"cat"}}),
			[]string{"q/list", "p/read", "p/wipe"},
			[]string{"list", "wipe"},
			true,
			func(read *catalog.Entry) bool { return cmp.Equal(read.Aliases, []string{"cat", "get"}) },
		},
		{"a tool switched off", rule(catalog.ToolOptions{Disabled: true}), []string{"q/list", "q/read", "p/wipe"}, []string{"list", "wipe"}, true, nil},
		{"another order", func(p []catalog.Plugin) []catalog.Plugin { p[0], p[1] = p[1], p[0]; return p }, []string{"q/list", "q/read", "p/wipe"}, []string{"list", "wipe"}, true, nil},
		{"a plugin that goes", func(p []catalog.Plugin) []catalog.Plugin { return p[1:] }, []string{"q/list", "q/read"}, []string{"list"}, true, nil},
		{
			"a plugin that comes", func(p []catalog.Plugin) []catalog.Plugin {
				return append(p, catalog.Plugin{Name: "r", Ceiling: tool.ReadOnly})
			},
			[]string{"q/list", "p/read", "p/wipe"},
			[]string{"list", "read", "wipe"},
			false, nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCatalog(t, catalog.Options{Plugins: before()})
			publish(t, c, "p", spec("read", tool.ReadOnly, func(s *tool.Spec) { s.Aliases = []string{"get"} }), spec("wipe", tool.Privileged))
			publish(t, c, "q", spec("list", tool.ReadOnly), spec("read", tool.ReadOnly))
			old := c.Entries()
			changes, stop := c.Changed()
			defer stop()

			if err := c.Apply(catalog.Options{Plugins: tt.change(before())}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, names(c)); diff != "" {
				t.Errorf("Entries() (-want +got):\n%s", diff)
			}
			if got := changed(changes); got != tt.changed || changed(changes) {
				t.Errorf("watchers are woken: %v, want %v, and once", got, tt.changed)
			}
			var same []string
			for _, e := range old {
				if now, err := c.Lookup(e.Spec.Name); err == nil && now == e {
					same = append(same, e.Spec.Name)
				}
			}
			if diff := cmp.Diff(tt.same, same); diff != "" {
				t.Errorf("tools that keep their entry (-want +got):\n%s", diff)
			}
			read, err := c.Lookup("read")
			if err != nil || tt.check != nil && !tt.check(read) {
				t.Errorf("Lookup(read) = %+v, %v", read, err)
			}
			// The plugins that are named can publish, and no others.
			for _, plugin := range []string{"p", "q", "r"} {
				named := strings.Contains(plugin, "q")
				for _, p := range tt.change(before()) {
					named = named || p.Name == plugin
				}
				if err := c.Publish(plugin, "digest", []tool.Spec{spec("new", tool.ReadOnly)}); (err == nil) != named {
					t.Errorf("Publish(%s) = %v, want success: %v", plugin, err, named)
				}
			}
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	publish(t, c, "p", spec("a", tool.ReadOnly))
	if err := c.Apply(catalog.Options{Plugins: []catalog.Plugin{{Name: "q"}, {Name: "q"}}}); err == nil {
		t.Error("Apply with a plugin named twice succeeded")
	}
	if diff := cmp.Diff([]string{"p/a"}, names(c)); diff != "" {
		t.Errorf("Entries() after that (-want +got):\n%s", diff)
	}
}

// TestPublishedAgain checks which publications wake those who watch, and which
// entries stay the same.
func TestPublishedAgain(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	a := spec("a", tool.ReadOnly, func(s *tool.Spec) {
		s.TierWhen = []tool.TierRule{{Property: "level", Equals: json.RawMessage(`1`), Tier: tool.ReadOnly}}
		s.OutputSchema = json.RawMessage(`{"type":"object"}`)
	})
	publish(t, c, "p", a)
	changes, stop := c.Changed()
	defer stop()
	respelled := a
	var wide bytes.Buffer
	if err := json.Indent(&wide, a.InputSchema, "", "  "); err != nil {
		t.Fatal(err)
	}
	respelled.InputSchema = wide.Bytes()
	respelled.OutputSchema = json.RawMessage(`{ "type": "object" }`)
	respelled.TierWhen = []tool.TierRule{{Property: "level", Equals: json.RawMessage(` 1 `), Tier: tool.ReadOnly}}
	for _, tt := range []struct {
		name, digest     string
		specs            []tool.Spec
		changed, another bool // whether watchers are woken, and a has another entry
	}{
		{"the same", "digest", []tool.Spec{a}, false, false},
		{"with other spaces", "digest", []tool.Spec{respelled}, false, false},
		{"by another program", "digest 2", []tool.Spec{a}, false, true},
		{"with a tool that is refused", "digest 2", []tool.Spec{a, spec("b", tool.Privileged)}, false, false},
		{"with another tool", "digest 2", []tool.Spec{a, spec("b", tool.ReadOnly)}, true, false},
		{"with another role", "digest 2", []tool.Spec{spec("a", tool.ReadOnly, func(s *tool.Spec) {
			*s = a
			s.InputSchema = []byte(strings.Replace(string(a.InputSchema), `"a file"`, `"a file","x-role":"path"`, 1))
		}), spec("b", tool.ReadOnly)}, true, true},
		{"not at all", "", nil, true, true},
	} {
		before, _ := c.Lookup("a")
		if err := c.Publish("p", tt.digest, tt.specs); err != nil {
			t.Fatal(err)
		}
		if got := changed(changes); got != tt.changed {
			t.Errorf("%s: watchers are woken: %v, want %v", tt.name, got, tt.changed)
		}
		if now, _ := c.Lookup("a"); (now != before) != tt.another {
			t.Errorf("%s: the tool has another entry: %v, want %v", tt.name, now != before, tt.another)
		}
	}
}

// TestApplyIsAtomic lets readers look while two sets of options take turns, and
// a plugin publishes.
func TestApplyIsAtomic(t *testing.T) {
	plugins := func(ceiling tool.Tier) []catalog.Plugin {
		return []catalog.Plugin{{Name: "p", Ceiling: ceiling, TrustClaims: true}, {Name: "q", Ceiling: ceiling, TrustClaims: true}}
	}
	c := newCatalog(t, catalog.Options{Plugins: plugins(tool.ReadOnly)})
	publish(t, c, "p", spec("p_read", tool.ReadOnly), spec("p_write", tool.SideEffecting))
	publish(t, c, "q", spec("q_read", tool.ReadOnly), spec("q_write", tool.SideEffecting))
	var writers sync.WaitGroup
	writers.Go(func() { // ends after 50 changes
		for i := range 50 {
			if err := c.Apply(catalog.Options{Plugins: plugins(tool.ReadOnly + tool.Tier(i%2))}); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Go(func() { // ends after 50 publications
		for range 50 {
			if err := c.Publish("p", "digest", []tool.Spec{spec("p_read", tool.ReadOnly), spec("p_write", tool.SideEffecting)}); err != nil {
				t.Error(err)
			}
		}
	})
	done := make(chan struct{})
	go func() { // ends with the writers
		writers.Wait()
		close(done)
	}()
	for reading := true; reading; {
		if n := len(c.Entries()); n != 2 && n != 4 {
			t.Fatalf("%v is half of a change", names(c))
		}
		select {
		case <-done:
			reading = false
		default:
		}
	}
}

func TestRolesOfAnEntry(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	publish(t, c, "p", spec("a", tool.ReadOnly, func(s *tool.Spec) {
		s.InputSchema = json.RawMessage(`{"type":"object","properties":{
			"file":{"type":"string","description":"d","x-role":"path"},"key":{"type":"string","description":"d","x-role":"secret"}}}`)
	}))
	entry, err := c.Lookup("a")
	if err != nil {
		t.Fatal(err)
	}
	arguments := map[string]any{"file": "a.txt", "key": "hunter2"}
	if diff := cmp.Diff([]string{"a.txt"}, entry.ValuesOf(tool.RolePath, arguments)); diff != "" {
		t.Errorf("ValuesOf(path) (-want +got):\n%s", diff)
	}
	shown, some := entry.Hidden(arguments)
	if diff := cmp.Diff(map[string]any{"file": "a.txt", "key": "(hidden)"}, shown); diff != "" || !some {
		t.Errorf("Hidden = %v (-want +got):\n%s", some, diff)
	}
}
