package page_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
)

var update = flag.Bool("update", false, "rewrite the files that documents are compared with")

// TestGolden compares the conversion of documents with results that people have checked: ten
// from Debian packages (see NOTICE.md), ten made for the test.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.html")
	if err != nil {
		t.Fatal(err)
	}
	made, projects := 0, map[string]int{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".html")
		project, _, _ := strings.Cut(name, "-")
		if project == "made" {
			made++
		} else {
			projects[project]++
		}
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, format := range []page.Format{page.Markdown, page.Text} {
				d, err := page.Convert(page.Request{
					Body: body, ContentType: "text/html", URL: "https://example.com/dir/" + name + ".html", Format: format, Whole: project == "made" && name != "made-news",
				})
				if err != nil {
					t.Fatal(err)
				}
				if project == "made" || format == page.Markdown {
					got.WriteString("<<< " + string(format) + ", " + d.Extract + ", " + d.Title + ", " + d.Byline + ", " + d.Published + ">>>\n" + d.Text)
				}
			}
			golden := strings.TrimSuffix(file, ".html") + ".md"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if made != 10 || len(projects) != 5 || len(files) != 20 {
		t.Errorf("%d documents, %d made, of the projects %v; want 20, 10 and five projects", len(files), made, projects)
	}
}
