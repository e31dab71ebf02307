package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestHostComesFirst checks that no plugin takes a name of the host's own tools.
func TestHostComesFirst(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{
		{Name: catalog.HostPlugin, Ceiling: tool.ReadOnly}, {Name: "fs", Ceiling: tool.ReadOnly},
	}})
	alias := func(s *tool.Spec) { s.Aliases = []string{"result_read"} }
	publish(t, c, "fs", spec("result_read", tool.ReadOnly), spec("read", tool.ReadOnly, alias))
	publish(t, c, catalog.HostPlugin, spec("result_read", tool.ReadOnly))
	if diff := cmp.Diff([]string{"fs/read", "toolhost/result_read"}, names(c)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for _, e := range c.Entries() {
		if e.OfHost() != (e.Spec.Name == "result_read") {
			t.Errorf("%s: OfHost() = %t", e.Spec.Name, e.OfHost())
		}
	}
	wantRefused := []catalog.Refusal{
		{Plugin: "fs", Tool: "result_read", Reason: "it is the name of a tool of the host itself", Taken: true},
		{Plugin: "fs", Tool: "result_read", Reason: `it is to be an alias of "read", and names "result_read" of plugin "toolhost" already`, Taken: true},
	}
	if diff := cmp.Diff(wantRefused, c.Refused()); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}
