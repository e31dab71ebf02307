package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestSearch(t *testing.T) {
	c := newCatalog(t, catalog.Options{Plugins: []catalog.Plugin{
		{Name: catalog.HostPlugin, Ceiling: tool.ReadOnly}, {Name: "p", Ceiling: tool.ReadOnly},
	}})
	described := func(name, description string, change ...func(*tool.Spec)) tool.Spec {
		return spec(name, tool.ReadOnly, append(change, func(s *tool.Spec) { s.Description = description })...)
	}
	publish(t, c, catalog.HostPlugin, described(catalog.FindTool, "Find a file, a commit or a page."))
	publish(t, c, "p",
		described("git_commit", "Record staged changes in the repository."),
		described("git_log", "List the commits of a repository.", func(s *tool.Spec) { s.SearchHint = "history" }),
		described("move_file", "Rename a file of the repository.", func(s *tool.Spec) { s.Aliases = []string{"mv"} }),
		described("web_fetch", "Read a page of the repository.", func(s *tool.Spec) {
			s.InputSchema = json.RawMessage(`{"type":"object","properties":{"url":{"type":"string","description":"d"}}}`)
		}),
	)
	all := func(string) bool { return true }
	for _, tt := range []struct {
		query  string
		limit  int
		mayUse func(string) bool
		want   string
	}{
		{"commit", 5, all, "git_commit git_log"},
		{"COMMIT my changes", 5, all, "git_commit"},
		{"list the commits of a repository", 1, all, "git_log"},
		{"history", 5, all, "git_log"},
		{"rename the file", 5, all, "move_file"},
		{"mv", 5, all, "move_file"},
		{"url", 5, all, "web_fetch"},
		{"commit", 1, all, "git_commit"},
		{"commit", 5, func(name string) bool { return name != "git_commit" }, "git_log"},
		{"gitcommt", 5, all, "git_commit"},
		{"gitcommt", 5, func(string) bool { return false }, ""},
		{"find_tool", 5, all, ""},
		{"weather", 5, all, ""},
		{"?!", 5, all, ""},
	} {
		var got []string
		for _, e := range c.Search(tt.query, tt.limit, tt.mayUse) {
			got = append(got, e.Spec.Name)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("Search(%q, %d) (-want +got):\n%s", tt.query, tt.limit, diff)
		}
	}
}

// BenchmarkSearch searches as many tools as one plugin may have.
func BenchmarkSearch(b *testing.B) {
	c, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "p", Ceiling: tool.ReadOnly}}})
	if err != nil {
		b.Fatal(err)
	}
	var specs []tool.Spec
	for i := range 500 {
		specs = append(specs, spec(fmt.Sprintf("tool_%d", i), tool.ReadOnly, func(s *tool.Spec) {
			s.Description = strings.Repeat(fmt.Sprintf("Does thing %d with files. ", i), 20)
		}))
	}
	if err := c.Publish("p", "digest", specs); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if len(c.Search("does the thing 77 with the files of a repository", 5, func(string) bool { return true })) == 0 {
			b.Fatal("nothing is found")
		}
	}
}
