package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

const pathSchema = `{"type":"object","properties":{
	"path":{"type":"string","description":"a file"},
	"create":{"type":"boolean","description":"make it"},
	"level":{"type":"integer","description":"how much"}}}`

// spec returns a tool that breaks no rule, changed by edits.
func spec(name string, tier tool.Tier, edits ...func(*tool.Spec)) tool.Spec {
	s := tool.Spec{Name: name, Tier: tier, Description: "Does it.", InputSchema: json.RawMessage(pathSchema)}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

func newCatalog(tb testing.TB, opts catalog.Options) *catalog.Catalog {
	tb.Helper()
	c, err := catalog.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func publish(tb testing.TB, c *catalog.Catalog, plugin string, specs ...tool.Spec) {
	tb.Helper()
	if err := c.Publish(plugin, "digest", specs); err != nil {
		tb.Fatal(err)
	}
}

func names(c *catalog.Catalog) []string {
	var list []string
	for _, entry := range c.Entries() {
		list = append(list, entry.Plugin+"/"+entry.Spec.Name)
	}
	return list
}

func TestTiers(t *testing.T) {
	createRule := func(s *tool.Spec) {
		s.TierWhen = []tool.TierRule{
			{Property: "level", Equals: json.RawMessage(`9`), Tier: tool.Privileged},
			{Property: "create", Equals: json.RawMessage(`true`), Tier: tool.SideEffecting},
		}
	}
	trusting := catalog.Plugin{Name: "p", Ceiling: tool.Privileged, TrustClaims: true}
	for _, tt := range []struct {
		name      string
		plugin    catalog.Plugin
		spec      tool.Spec
		arguments map[string]any
		want      tool.Tier
		refused   string // why there is no such tool
		denied    string // why there is no such call
	}{
		{name: "a trusted claim", plugin: trusting, spec: spec("a", tool.ReadOnly), want: tool.ReadOnly},
		{
			name: "a claim of nobody's", plugin: catalog.Plugin{Name: "p", Ceiling: tool.SideEffecting},
			spec: spec("a", tool.ReadOnly), want: tool.SideEffecting,
		},
		{
			name:   "a claim for a listed tool",
			plugin: catalog.Plugin{Name: "p", Ceiling: tool.Privileged, Tools: []catalog.ToolOptions{{Name: "a"}}},
			spec:   spec("a", tool.ReadOnly), want: tool.ReadOnly,
		},
		{
			name:   "the admin's word",
			plugin: catalog.Plugin{Name: "p", Ceiling: tool.Privileged, Tools: []catalog.ToolOptions{{Name: "a", Tier: tool.SideEffecting}}},
			spec:   spec("a", tool.Privileged), want: tool.SideEffecting,
		},
		{
			name: "a claim above the ceiling", plugin: catalog.Plugin{Name: "p", Ceiling: tool.ReadOnly},
			spec:    spec("a", tool.Privileged),
			refused: "its tier privileged is above read_only, which is the most that the configuration lets its plugin do",
		},
		{
			name:    "the admin's word above the ceiling",
			plugin:  catalog.Plugin{Name: "p", Ceiling: tool.ReadOnly, Tools: []catalog.ToolOptions{{Name: "a", Tier: tool.Privileged}}},
			spec:    spec("a", tool.ReadOnly),
			refused: "its tier privileged is above read_only, which is the most that the configuration lets its plugin do",
		},
		{name: "no claim", plugin: trusting, spec: spec("a", 0), refused: "it states no tier"},
		{name: "no rule holds", plugin: trusting, spec: spec("a", tool.ReadOnly, createRule), arguments: map[string]any{"create": false}, want: tool.ReadOnly},
		{name: "a rule holds", plugin: trusting, spec: spec("a", tool.ReadOnly, createRule), arguments: map[string]any{"create": true}, want: tool.SideEffecting},
		{
			name: "the first rule counts, numbers compare as numbers", plugin: trusting, spec: spec("a", tool.ReadOnly, createRule),
			arguments: map[string]any{"create": true, "level": json.Number("9.0")}, want: tool.Privileged,
		},
		{
			name: "rules of nobody's", plugin: catalog.Plugin{Name: "p", Ceiling: tool.SideEffecting},
			spec: spec("a", tool.ReadOnly, createRule), arguments: map[string]any{"create": false}, want: tool.SideEffecting,
		},
		{
			name: "a rule of nobody's does not go below the ceiling", plugin: catalog.Plugin{Name: "p", Ceiling: tool.Privileged},
			spec: spec("a", tool.ReadOnly, createRule), arguments: map[string]any{"create": true}, want: tool.Privileged,
		},
		{
			name: "a rule of nobody's above the ceiling", plugin: catalog.Plugin{Name: "p", Ceiling: tool.ReadOnly},
			spec: spec("a", tool.ReadOnly, createRule), arguments: map[string]any{"create": true},
			denied: "a with these arguments is not allowed: its tier side_effecting is above read_only, which is the most that the configuration lets its plugin do",
		},
		{
			name: "a rule of nobody's that does not hold", plugin: catalog.Plugin{Name: "p", Ceiling: tool.ReadOnly},
			spec: spec("a", tool.ReadOnly, createRule), arguments: map[string]any{"create": false}, want: tool.ReadOnly,
		},
		{
			name:   "a rule does not go below the admin's word",
			plugin: catalog.Plugin{Name: "p", Ceiling: tool.Privileged, Tools: []catalog.ToolOptions{{Name: "a", Tier: tool.Privileged}}},
			spec:   spec("a", tool.ReadOnly, createRule), arguments: map[string]any{"create": true}, want: tool.Privileged,
		},
		{
			name: "a rule above the ceiling", plugin: catalog.Plugin{Name: "p", Ceiling: tool.SideEffecting, TrustClaims: true},
			spec: spec("a", tool.ReadOnly, createRule), arguments: map[string]any{"level": json.Number("9")},
			denied: "a with these arguments is not allowed: its tier privileged is above side_effecting, which is the most that the configuration lets its plugin do",
		},
		{
			name: "a rule for no property", plugin: trusting,
			spec:    spec("a", tool.ReadOnly, func(s *tool.Spec) { s.TierWhen = []tool.TierRule{{Property: "x", Tier: tool.ReadOnly}} }),
			refused: `a tier rule names "x", which is no property of the input schema`,
		},
		{
			name: "a rule without a tier", plugin: trusting,
			spec:    spec("a", tool.ReadOnly, func(s *tool.Spec) { s.TierWhen = []tool.TierRule{{Property: "path"}} }),
			refused: `the tier rule for "path" states no tier`,
		},
		{
			name: "a rule that is not JSON", plugin: trusting,
			spec: spec("a", tool.ReadOnly, func(s *tool.Spec) {
				s.TierWhen = []tool.TierRule{{Property: "path", Equals: json.RawMessage(`x`), Tier: tool.ReadOnly}}
			}),
			refused: `the tier rule for "path" compares with a value that is not JSON`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{tt.plugin}})
			publish(t, c, "p", tt.spec)
			if tt.refused != "" {
				if got := c.Refused(); len(got) != 1 || got[0].Tool != "a" || !strings.HasPrefix(got[0].Reason, tt.refused) {
					t.Errorf("Refused() = %v, want a: %s", got, tt.refused)
				}
				if len(c.Entries()) > 0 {
					t.Errorf("Entries() = %v, want none", names(c))
				}
				return
			}
			entry, missing := c.Lookup("a")
			if missing != nil {
				t.Fatalf("Lookup(a): %v, refused %v", missing, c.Refused())
			}
			got, denied := entry.TierOf(tt.arguments)
			switch {
			case tt.denied == "" && (denied != nil || got != tt.want):
				t.Errorf("TierOf(%v) = %v, %v, want %v", tt.arguments, got, denied, tt.want)
			case tt.denied != "" && (denied == nil || denied.Code != tool.PermissionDenied || denied.Message != tt.denied):
				t.Errorf("TierOf(%v):\n got %v\nwant %s", tt.arguments, denied, tt.denied)
			}
		})
	}
}

func TestPublishRefuses(t *testing.T) {
	edit := func(f func(*tool.Spec)) tool.Spec { return spec("a", tool.ReadOnly, f) }
	for _, tt := range []struct {
		name string
		spec tool.Spec
		want string
	}{
		{"name", edit(func(s *tool.Spec) { s.Name = "Read File" }), "its name must be a lower-case letter, then"},
		{"no description", edit(func(s *tool.Spec) { s.Description = " " }), "it has no description"},
		{"endless description", edit(func(s *tool.Spec) { s.Description = strings.Repeat("x", 17<<10) }), "its description has 17408 bytes"},
		{"endless title", edit(func(s *tool.Spec) { s.Title = strings.Repeat("x", 257) }), "its title and category may have 256 bytes"},
		{"escapes in a description", edit(func(s *tool.Spec) { s.Description = "Does\tit.\n\x1b[2J" }), "its description has control characters"},
		{"a description that runs backwards", edit(func(s *tool.Spec) { s.Description = "Does \u202eit." }), "its description has control characters"},
		{"a title of two lines", edit(func(s *tool.Spec) { s.Title = "a\nb" }), "its title or category has control or invisible characters"},
		{"endless search hint", edit(func(s *tool.Spec) { s.SearchHint = strings.Repeat("x", 257) }), "its search hint may have 256 bytes"},
		{"a search hint that hides", edit(func(s *tool.Spec) { s.SearchHint = "a\u200b" }), "its search hint has control or invisible characters"},
		{"a search hint of two lines", edit(func(s *tool.Spec) { s.SearchHint = "a\nb" }), "its search hint has control or invisible characters"},
		{"endless reason to be unavailable", edit(func(s *tool.Spec) { s.Unavailable = strings.Repeat("x", 513) }), "the reason why it is unavailable may have 512 bytes"},
		{"a reason to be unavailable that hides", edit(func(s *tool.Spec) { s.Unavailable = "a\u200b" }), "the reason why it is unavailable may have 512 bytes"},
		{"a category that hides", edit(func(s *tool.Spec) { s.Category = "a\u200b" }), "its title or category has control or invisible characters"},
		{"an alias with a control character", edit(func(s *tool.Spec) { s.Aliases = []string{"b\x1b"} }), `its alias "b\x1b" is not a valid tool name`},
		{"alias", edit(func(s *tool.Spec) { s.Aliases = []string{"B-"} }), `its alias "B-" is not a valid tool name`},
		{"many aliases", edit(func(s *tool.Spec) { s.Aliases = make([]string, 17) }), "it has 17 aliases, more than the 16"},
		{"negative time-out", edit(func(s *tool.Spec) { s.Timeout = -1 }), "must not be negative"},
		{"input schema", edit(func(s *tool.Spec) { s.InputSchema = nil }), "input schema: there is none"},
		{"output schema", edit(func(s *tool.Spec) { s.OutputSchema = json.RawMessage(`{"type":"array"}`) }), `output schema: at the root: the type must be "object"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
			publish(t, c, "p", tt.spec, spec("good", tool.ReadOnly))
			got := c.Refused()
			if len(got) != 1 || got[0].Plugin != "p" || got[0].Tool != tt.spec.Name || !strings.Contains(got[0].Reason, tt.want) {
				t.Errorf("Refused() = %v, want %s: %s", got, tt.spec.Name, tt.want)
			}
			if diff := cmp.Diff([]string{"p/good"}, names(c)); diff != "" {
				t.Errorf("Entries() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusalIsVisible checks that a refused tool's name keeps to its line.
func TestRefusalIsVisible(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	publish(t, c, "p", spec("a\x1b[2J\nb", tool.ReadOnly))
	if got := c.Refused(); len(got) != 1 || got[0].Tool != `"a\x1b[2J\nb"` {
		t.Errorf("Refused() = %+v, want the tool's name with visible escapes", got)
	}
}

// TestOutputSchema checks that clients get output schemas without the keywords
// that are the host's own, and can ask any tool for one.
func TestOutputSchema(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	publish(t, c, "p", spec("without", tool.ReadOnly), spec("with", tool.ReadOnly, func(s *tool.Spec) {
		s.OutputSchema = json.RawMessage(`{"type":"object","properties":{"p":{"type":"string","x-role":"path"}}}`)
	}))
	for name, want := range map[string]string{"without": "", "with": `{"properties":{"p":{"type":"string"}},"type":"object"}`} {
		entry, err := c.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(entry.Output.Public()); got != want || entry.Digest != "digest" {
			t.Errorf("%s of program %s has output schema %s, want %s", name, entry.Digest, got, want)
		}
	}
}

func TestPublishReplaces(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{
		{Name: "first", Ceiling: tool.ReadOnly}, {Name: "second", Ceiling: tool.ReadOnly},
	}})
	alias := func(names ...string) func(*tool.Spec) { return func(s *tool.Spec) { s.Aliases = names } }
	publish(t, c, "second", spec("read", tool.ReadOnly, alias("get", "list")), spec("zip", tool.ReadOnly))
	if diff := cmp.Diff([]string{"second/read", "second/zip"}, names(c)); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}

	publish(t, c, "first", spec("read", tool.ReadOnly, alias("get")), spec("list", tool.ReadOnly), spec("list", tool.ReadOnly))
	if diff := cmp.Diff([]string{"first/list", "first/read", "second/zip"}, names(c)); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	wantRefused := []catalog.Refusal{
		{Plugin: "first", Tool: "list", Reason: "the plugin publishes this name twice, and the first one counts"},
		{Plugin: "second", Tool: "read", Reason: `plugin "first", which is first in the configuration, has a tool of this name`, Taken: true},
	}
	if diff := cmp.Diff(wantRefused, c.Refused()); diff != "" {
		t.Errorf("Refused() (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"get": "first/read", "list": "first/list", "zip": "second/zip"} {
		entry, err := c.Lookup(name)
		if err != nil || entry.Plugin+"/"+entry.Spec.Name != want {
			t.Errorf("Lookup(%s) = %v, %v, want %s", name, entry, err, want)
		}
	}

	publish(t, c, "first")
	if diff := cmp.Diff([]string{"second/read", "second/zip"}, names(c)); diff != "" {
		t.Errorf("after the first plugin has gone (-want +got):\n%s", diff)
	}
	if err := c.Publish("third", "", []tool.Spec{spec("a", tool.ReadOnly)}); err == nil {
		t.Error("Publish of a plugin that nobody configured succeeded")
	}
	if err := c.Publish("third", "", nil); err != nil {
		t.Errorf("Publish of no tools of a plugin that has gone: %v", err)
	}
}

func TestAliasesThatLeadElsewhere(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	alias := func(names ...string) func(*tool.Spec) { return func(s *tool.Spec) { s.Aliases = names } }
	publish(t, c, "p",
		spec("count", tool.ReadOnly, alias("slow", "wc", "n")), spec("number", tool.ReadOnly, alias("n")), spec("slow", tool.ReadOnly))
	wantRefused := []catalog.Refusal{
		{Plugin: "p", Tool: "slow", Reason: `it is to be an alias of "count", and names "slow" of plugin "p" already`, Taken: true},
		{Plugin: "p", Tool: "n", Reason: `it is to be an alias of "number", and names "count" of plugin "p" already`, Taken: true},
	}
	if diff := cmp.Diff(wantRefused, c.Refused()); diff != "" {
		t.Errorf("Refused() (-want +got):\n%s", diff)
	}
	for name, want := range map[string][]string{"count": {"wc", "n"}, "number": nil, "slow": nil} {
		entry, err := c.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, entry.Aliases, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("aliases of %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLookupOfARefusedTool(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly, TrustClaims: true}}})
	publish(t, c, "p", spec("write", tool.SideEffecting))
	_, err := c.Lookup("write")
	if err == nil || err.Code != tool.NotFound || !strings.HasPrefix(err.Message, `the tool "write" is not offered: `) {
		t.Errorf("Lookup(write) = %v, want the reason", err)
	}
}

func TestToolBlocks(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly, Tools: []catalog.ToolOptions{
		{Name: "read_file", Timeout: time.Minute, MaxOutput: tool.MiB, Rate: catalog.Rate{Calls: 30, Per: time.Hour}, Aliases: []string{"cat", "slurp"}},
		{Name: "find", Disabled: true},
		{Name: "raed_fiel"},
		{Name: "zzz"},
	}}}})
	publish(t, c, "p",
		spec("read_file", tool.ReadOnly, func(s *tool.Spec) {
			s.Timeout, s.MaxOutput, s.Aliases = time.Second, tool.KiB, []string{"cat", "file_read"}
		}),
		spec("find", tool.ReadOnly),
		spec("stat", tool.ReadOnly, func(s *tool.Spec) { s.Timeout, s.MaxOutput = 24*time.Hour, tool.TiB }),
		spec("plain", tool.ReadOnly))
	wantRefused := []catalog.Refusal{
		{Plugin: "p", Tool: "find", Reason: "disabled in configuration"},
		{Plugin: "p", Tool: "raed_fiel", Reason: `the configuration has a tool block for it, and the plugin, with its settings, has no tool of this name; did you mean "read_file"?`, Unknown: true, Near: "read_file"},
		{Plugin: "p", Tool: "zzz", Reason: "the configuration has a tool block for it, and the plugin, with its settings, has no tool of this name", Unknown: true},
	}
	if diff := cmp.Diff(wantRefused, c.Refused()); diff != "" {
		t.Errorf("Refused() (-want +got):\n%s", diff)
	}
	for _, want := range []struct {
		name      string
		timeout   time.Duration
		maxOutput tool.ByteSize
		rate      catalog.Rate
		aliases   []string
	}{
		{"slurp", time.Minute, tool.MiB, catalog.Rate{Calls: 30, Per: time.Hour}, []string{"cat", "slurp", "file_read"}},
		{"stat", 10 * time.Minute, 16 * tool.MiB, catalog.Rate{}, nil},
		{"plain", catalog.DefaultTimeout, catalog.DefaultMaxOutput, catalog.Rate{}, nil},
	} {
		entry, err := c.Lookup(want.name)
		if err != nil {
			t.Fatal(err)
		}
		if entry.Timeout != want.timeout || entry.MaxOutput != want.maxOutput || entry.Rate != want.rate || !cmp.Equal(entry.Aliases, want.aliases) {
			t.Errorf("%s has %v, %v, %v, %v, want %v, %v, %v, %v", want.name, entry.Timeout, entry.MaxOutput, entry.Rate, entry.Aliases,
				want.timeout, want.maxOutput, want.rate, want.aliases)
		}
	}
}

func TestLookupUnknown(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	publish(t, c, "p", spec("read_file", tool.ReadOnly), spec("list_directory", tool.ReadOnly))
	for _, tt := range []struct{ name, message, hint string }{
		{"raed_file", `unknown tool "raed_file"`, "did you mean read_file?"},
		{"send_mail", `unknown tool "send_mail"`, "list the tools to see which there are, or search them with find_tool if your list has it"},
		{strings.Repeat("x", 1<<20), `unknown tool "` + strings.Repeat("x", 64) + `…"`, "list the tools to see which there are, or search them with find_tool if your list has it"},
	} {
		_, err := c.Lookup(tt.name)
		if err == nil || err.Code != tool.NotFound || err.Message != tt.message || err.Hint != tt.hint {
			t.Errorf("Lookup(%.80s) = %v, want %s (%s)", tt.name, err, tt.message, tt.hint)
		}
	}
}

func TestChanged(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	changes, stop := c.Changed()
	publish(t, c, "p", spec("a", tool.ReadOnly))
	publish(t, c, "p", spec("b", tool.ReadOnly))
	if len(changes) != 1 {
		t.Errorf("%d changes wait after two publications, want them merged into 1", len(changes))
	}
	<-changes
	stop()
	publish(t, c, "p", spec("c", tool.ReadOnly))
	if len(changes) != 0 {
		t.Error("a change arrives after the subscription has ended")
	}
}

// TestPublishIsAtomic checks that readers see all tools of a publication or
// none, while plugins publish at the same time.
func TestPublishIsAtomic(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{
		{Name: "p", Ceiling: tool.ReadOnly}, {Name: "q", Ceiling: tool.ReadOnly},
	}})
	var publishers sync.WaitGroup
	for _, plugin := range []string{"p", "q"} {
		publishers.Go(func() { // ends after 50 publications
			for i := range 50 {
				var specs []tool.Spec
				if i%2 == 0 {
					specs = []tool.Spec{spec(plugin+"_a", tool.ReadOnly), spec(plugin+"_b", tool.ReadOnly)}
				}
				if err := c.Publish(plugin, "digest", specs); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { // ends with the publishers
		publishers.Wait()
		close(done)
	}()
	for reading := true; reading; {
		if n := len(c.Entries()); n%2 != 0 {
			t.Fatalf("%v is half of a publication", names(c))
		}
		select {
		case <-done:
			reading = false
		default:
		}
	}
	if len(c.Entries()) != 0 {
		t.Errorf("Entries() = %v after the last publications, want none", names(c))
	}
}

// TestHints checks each tool's hints for clients, by the effective tier and not only by the
// author's claims.
func TestHints(t *testing.T) {
	rule := func(s *tool.Spec) { s.TierWhen = []tool.TierRule{{Property: "create", Tier: tool.SideEffecting}} }
	destructive := func(s *tool.Spec) { s.Destructive = true }
	idempotent := func(s *tool.Spec) { s.Idempotent = true }
	type hints struct{ ReadOnly, Destructive, Idempotent bool }
	readOnly := hints{ReadOnly: true, Idempotent: true}
	for _, tt := range []struct {
		name    string
		ceiling tool.Tier
		spec    tool.Spec
		want    hints
	}{
		{"read_only", tool.Privileged, spec("a", tool.ReadOnly), readOnly},
		{"read_only, and said to destroy", tool.Privileged, spec("a", tool.ReadOnly, destructive), readOnly},
		{"side_effecting", tool.Privileged, spec("a", tool.SideEffecting), hints{}},
		{"side_effecting, twice as once", tool.Privileged, spec("a", tool.SideEffecting, idempotent), hints{Idempotent: true}},
		{"side_effecting, and destroys", tool.Privileged, spec("a", tool.SideEffecting, destructive), hints{Destructive: true}},
		{"privileged", tool.Privileged, spec("a", tool.Privileged), hints{Destructive: true}},
		{"with a rule", tool.Privileged, spec("a", tool.ReadOnly, rule), hints{}},
		{"with a rule that cannot run", tool.ReadOnly, spec("a", tool.ReadOnly, rule), readOnly},
	} {
		c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tt.ceiling, TrustClaims: true}}})
		publish(t, c, "p", tt.spec)
		entry, err := c.Lookup("a")
		if err != nil {
			t.Fatal(err)
		}
		if got := (hints{entry.ReadOnly(), entry.Destructive(), entry.Idempotent()}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	_, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "p"}, {Name: "p"}}})
	if err == nil {
		t.Error("New with a plugin named twice succeeded")
	}
}

func ExampleCatalog() {
	c, err := catalog.New(catalog.Options{
		Plugins: []catalog.Plugin{{Name: "fs", Ceiling: tool.SideEffecting, TrustClaims: true}},
	})
	if err != nil {
		panic(err)
	}
	schema := json.RawMessage(`{"type": "object", "properties": {"path": {"type": "string", "description": "the file"}}}`)
	if err := c.Publish("fs", "2c26b46b", []tool.Spec{
		{Name: "read_file", Description: "Reads a file.", Tier: tool.ReadOnly, InputSchema: schema},
		{Name: "write_file", Description: "Writes a file.", Tier: tool.SideEffecting, InputSchema: schema},
		{Name: "wipe_disk", Description: "Wipes a disk.", Tier: tool.Privileged, InputSchema: schema},
	}); err != nil {
		panic(err)
	}
	for _, entry := range c.Entries() {
		fmt.Println(entry.Spec.Name, entry.Tier)
	}
	for _, refusal := range c.Refused() {
		fmt.Println(refusal.Tool, "is refused because", refusal.Reason)
	}
	// Output:
	// read_file read_only
	// write_file side_effecting
	// wipe_disk is refused because its tier privileged is above side_effecting, which is the most that the configuration lets its plugin do
}
