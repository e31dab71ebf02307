package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestUnavailableTool checks that a tool that cannot work is not offered, that its block is no
// mistake, and that its name stays free for other plugins.
func TestUnavailableTool(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{
		{Name: "p", Ceiling: tool.ReadOnly, Tools: []catalog.ToolOptions{{Name: "search"}}}, {Name: "q", Ceiling: tool.ReadOnly},
	}})
	publish(t, c, "p", spec("search", tool.ReadOnly, func(s *tool.Spec) { s.Unavailable, s.Aliases = "no service; add one", []string{"look"} }), spec("read", tool.ReadOnly))
	want := []catalog.Refusal{{Plugin: "p", Tool: "search", Reason: "no service; add one", Unavailable: true}}
	if diff := cmp.Diff(want, c.Refused()); diff != "" {
		t.Errorf("Refused() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"p/read"}, names(c)); diff != "" {
		t.Errorf("Entries() (-want +got):\n%s", diff)
	}
	for _, name := range []string{"search", "look"} {
		_, err := c.Lookup(name)
		if err == nil || err.Code != tool.NotFound || err.Message != fmt.Sprintf("the tool %q is not available: no service; add one", name) {
			t.Errorf("Lookup(%s) = %v", name, err)
		}
		if _, err := c.LookupFor(name, func(string) bool { return false }); err == nil || strings.Contains(err.Message, "service") {
			t.Errorf("LookupFor(%s) outside of a toolset = %v", name, err)
		}
	}
	publish(t, c, "q", spec("search", tool.ReadOnly))
	if e, err := c.Lookup("search"); err != nil || e.Plugin != "q" {
		t.Errorf("Lookup(search) = %v, %v, want that of q", e, err)
	}
}
