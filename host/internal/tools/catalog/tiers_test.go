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
