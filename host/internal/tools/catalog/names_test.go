package catalog_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestNamesBelongToTheFirst has two plugins publish tools, in either order, and checks which one
// owns each name.
func TestNamesBelongToTheFirst(t *testing.T) {
	named := func(name string, aliases ...string) tool.Spec {
		return spec(name, tool.ReadOnly, func(s *tool.Spec) { s.Aliases = aliases })
	}
	for _, tt := range []struct {
		name          string
		first, second []tool.Spec
		reserved      []string          // of the first
		want          map[string]string // by name: the tool that it leads to
		refused       string
		reason        string
	}{
		{
			name: "a tool's name", first: []tool.Spec{named("read")}, second: []tool.Spec{named("read")},
			want: map[string]string{"read": "a/read"}, refused: "read", reason: `plugin "a", which is first in the configuration, has a tool of this name`,
		},
		{
			name: "a tool with the name of an alias", first: []tool.Spec{named("read_file", "read")}, second: []tool.Spec{named("read")},
			want: map[string]string{"read": "a/read_file"}, refused: "read",
			reason: `plugin "a", which is first in the configuration, has this name as an alias of "read_file"`,
		},
		{
			name: "an alias with the name of a tool", first: []tool.Spec{named("read")}, second: []tool.Spec{named("load", "read")},
			want: map[string]string{"read": "a/read", "load": "b/load"}, refused: "read",
			reason: `it is to be an alias of "load", and names "read" of plugin "a" already`,
		},
		{
			name: "two aliases", first: []tool.Spec{named("read", "get")}, second: []tool.Spec{named("load", "get")},
			want: map[string]string{"get": "a/read", "load": "b/load"}, refused: "get",
			reason: `it is to be an alias of "load", and names "read" of plugin "a" already`,
		},
		{
			name: "a name of a plugin that does not run yet", reserved: []string{"read"}, second: []tool.Spec{named("read"), named("load", "read")},
			want: map[string]string{"load": "b/load"}, refused: "read",
			reason: `plugin "a", which is first in the configuration, had a tool of this name when it last ran`,
		},
		{
			name: "a name that it no longer has", reserved: []string{"read"}, first: []tool.Spec{named("list")}, second: []tool.Spec{named("read")},
			want: map[string]string{"list": "a/list", "read": "b/read"},
		},
	} {
		for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
			t.Run(fmt.Sprintf("%s, %s starts first", tt.name, order[0]), func(t *testing.T) {
				c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{
					{Name: "a", Ceiling: tool.ReadOnly, Reserved: tt.reserved}, {Name: "b", Ceiling: tool.ReadOnly},
				}})
				for _, plugin := range order {
					if specs := map[string][]tool.Spec{"a": tt.first, "b": tt.second}[plugin]; specs != nil {
						publish(t, c, plugin, specs...)
					}
				}
				for name, want := range tt.want {
					entry, err := c.Lookup(name)
					if err != nil || entry.Plugin+"/"+entry.Spec.Name != want {
						t.Errorf("Lookup(%s) = %v, %v; want %s", name, entry, err, want)
					}
				}
				got := c.Refused()
				if tt.refused == "" {
					if len(got) > 0 {
						t.Errorf("refused: %+v", got)
					}
					return
				}
				want := catalog.Refusal{Plugin: "b", Tool: tt.refused, Reason: tt.reason, Taken: true}
				if !slices.Contains(got, want) {
					t.Errorf("refused (-want +got):\n%s", cmp.Diff([]catalog.Refusal{want}, got))
				}
			})
		}
	}
}
