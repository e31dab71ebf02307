package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestSound checks that tools are only known as sound if each of their schemas was compiled.
func TestSound(t *testing.T) {
	wrong := spec("wrong", tool.ReadOnly, func(s *tool.Spec) {
		s.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","description":"d","pattern":"["}}}`)
	})
	for _, tt := range []struct {
		name string
		spec tool.Spec
		opts catalog.Plugin
		want bool
	}{
		{"offered", spec("a", tool.ReadOnly), catalog.Plugin{}, true},
		{"unavailable", spec("a", tool.ReadOnly, func(s *tool.Spec) { s.Unavailable = "no network" }), catalog.Plugin{}, true},
		{"above the ceiling", spec("a", tool.Privileged), catalog.Plugin{}, true},
		{"disabled, and not compiled", spec("a", tool.ReadOnly), catalog.Plugin{Tools: []catalog.ToolOptions{{Name: "a", Disabled: true}}}, false},
		{"a wrong pattern", wrong, catalog.Plugin{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Name, tt.opts.Ceiling = "p", tool.ReadOnly
			c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{tt.opts}})
			publish(t, c, "p", tt.spec, spec("good", tool.ReadOnly))
			if got := c.Sound("p"); got != tt.want {
				t.Errorf("Sound = %v, want %v", got, tt.want)
			}
		})
	}
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	if err := c.PublishKnown("p", "digest", []tool.Spec{spec("a", tool.ReadOnly)}); err != nil || !c.Sound("p") {
		t.Errorf("PublishKnown = %v, and Sound = %v", err, c.Sound("p"))
	}
	if entry, err := c.Lookup("a"); err != nil || !entry.Schema.Names()["path"] {
		t.Errorf("a known tool = %+v, %v; want it with its arguments", entry, err)
	}
}
