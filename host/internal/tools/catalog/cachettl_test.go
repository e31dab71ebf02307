package catalog_test

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestCacheTTL(t *testing.T) {
	for _, tt := range []struct {
		name      string
		cacheable bool
		admin     time.Duration
		want      time.Duration
	}{
		{"the plugin says no", false, 0, 0},
		{"the plugin says no, and the admin a time", false, time.Hour, 0},
		{"the plugin says yes", true, 0, catalog.DefaultCacheTTL},
		{"the admin says how long", true, time.Hour, time.Hour},
		{"the admin says no", true, -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{{
				Name: "p", Ceiling: tool.ReadOnly, Tools: []catalog.ToolOptions{{Name: "look", CacheTTL: tt.admin}},
			}}})
			s := spec("look", tool.ReadOnly)
			s.Cacheable = tt.cacheable
			if err := c.Publish("p", "1", []tool.Spec{s}); err != nil {
				t.Fatal(err)
			}
			entry, err := c.Lookup("look")
			if err != nil {
				t.Fatal(err)
			}
			if entry.CacheTTL != tt.want {
				t.Errorf("CacheTTL = %v, want %v", entry.CacheTTL, tt.want)
			}
		})
	}
}
