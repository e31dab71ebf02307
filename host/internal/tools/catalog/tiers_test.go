package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestTiersOfATool checks which tiers the calls of a tool can have and run.
func TestTiersOfATool(t *testing.T) {
	rules := func(s *tool.Spec) {
		s.TierWhen = []tool.TierRule{
			{Property: "level", Equals: json.RawMessage(`9`), Tier: tool.Privileged},
			{Property: "level", Equals: json.RawMessage(`8`), Tier: tool.Privileged},
			{Property: "create", Tier: tool.SideEffecting},
		}
	}
	for _, tt := range []struct {
		name    string
		ceiling tool.Tier
		spec    tool.Spec
		want    []tool.Tier
	}{
		{"without rules", tool.Privileged, spec("a", tool.SideEffecting), []tool.Tier{tool.SideEffecting}},
		{"rules for more", tool.Privileged, spec("a", tool.ReadOnly, rules), []tool.Tier{tool.ReadOnly, tool.SideEffecting, tool.Privileged}},
		{"rules for less", tool.Privileged, spec("a", tool.Privileged, rules), []tool.Tier{tool.SideEffecting, tool.Privileged}},
		{"rules above the ceiling", tool.ReadOnly, spec("a", tool.ReadOnly, rules), []tool.Tier{tool.ReadOnly}},
	} {
		c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tt.ceiling, TrustClaims: true}}})
		publish(t, c, "p", tt.spec)
		entry, err := c.Lookup("a")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, entry.Tiers()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestTiersThatTheKernelProves: with SplitTiers, the claim read_only counts, of single calls too, and
// no other claim does.
func TestTiersThatTheKernelProves(t *testing.T) {
	rules := func(tiers ...tool.Tier) func(s *tool.Spec) {
		return func(s *tool.Spec) {
			for i, tier := range tiers {
				s.TierWhen = append(s.TierWhen, tool.TierRule{Property: []string{"level", "create"}[i], Tier: tier})
			}
		}
	}
	level, create := map[string]any{"level": 1}, map[string]any{"create": true}
	for _, tt := range []struct {
		name      string
		plugin    catalog.Plugin
		spec      tool.Spec
		arguments map[string]any
		want      tool.Tier
		refused   bool
	}{
		{name: "a claim of read_only", spec: spec("a", tool.ReadOnly), want: tool.ReadOnly},
		{name: "another claim", spec: spec("a", tool.SideEffecting), want: tool.Privileged},
		{name: "a rule for more", spec: spec("a", tool.ReadOnly, rules(tool.SideEffecting)), arguments: level, want: tool.Privileged},
		{name: "a call without that argument", spec: spec("a", tool.ReadOnly, rules(tool.SideEffecting)), arguments: create, want: tool.ReadOnly},
		{name: "a rule for less", spec: spec("a", tool.Privileged, rules(tool.SideEffecting, tool.ReadOnly)), arguments: create, want: tool.ReadOnly},
		{name: "the other rule for less", spec: spec("a", tool.Privileged, rules(tool.SideEffecting, tool.ReadOnly)), arguments: level, want: tool.Privileged},
		{
			name: "a rule above the ceiling", plugin: catalog.Plugin{Ceiling: tool.SideEffecting},
			spec: spec("a", tool.ReadOnly, rules(tool.Privileged)), arguments: level, want: tool.Privileged, refused: true,
		},
		{
			name: "an administrator's tier", plugin: catalog.Plugin{Tools: []catalog.ToolOptions{{Name: "a", Tier: tool.SideEffecting}}},
			spec: spec("a", tool.ReadOnly), want: tool.SideEffecting,
		},
		{name: "a listed tool", plugin: catalog.Plugin{Tools: []catalog.ToolOptions{{Name: "a"}}}, spec: spec("a", tool.SideEffecting), want: tool.SideEffecting},
		{name: "a trusted plugin", plugin: catalog.Plugin{TrustClaims: true}, spec: spec("a", tool.SideEffecting), want: tool.SideEffecting},
	} {
		tt.plugin.Name, tt.plugin.Ceiling, tt.plugin.SplitTiers = "p", max(tt.plugin.Ceiling, tool.SideEffecting), true
		if !tt.refused {
			tt.plugin.Ceiling = tool.Privileged
		}
		c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{tt.plugin}})
		publish(t, c, "p", tt.spec)
		entry, err := c.Lookup("a")
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got, refused := entry.TierOf(tt.arguments)
		if got != tt.want || (refused != nil) != tt.refused {
			t.Errorf("%s: TierOf() = %v, %v, want %v", tt.name, got, refused, tt.want)
		}
		tt.plugin.SplitTiers = false
		if !tt.plugin.TrustClaims && len(tt.plugin.Tools) == 0 && !tt.refused {
			c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{tt.plugin}})
			publish(t, c, "p", tt.spec)
			if entry, err := c.Lookup("a"); err != nil || entry.HighestTier() != tool.Privileged || entry.Tier != tool.Privileged {
				t.Errorf("control: %s: without SplitTiers the entry is %+v, %v", tt.name, entry, err)
			}
		}
	}
}
