package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestShippedConfigurationExplainsSensitiveFiles checks that in the default configuration
// every call that reads a sensitive file needs approval, and ordinary calls do not.
func TestShippedConfigurationExplainsSensitiveFiles(t *testing.T) {
	t.Parallel()
	h := serveShipped(t)
	h.write(t, ".env", "KEY=1\n")
	for _, tt := range []struct {
		verdict string
		call    []string
	}{
		{"confirm", []string{"shell_exec", "command=cat .env"}},
		{"confirm", []string{"shell_exec", "command=git show HEAD:.env"}},
		{"confirm", []string{"shell_exec", "command=head credentials.json"}},
		{"ask", []string{"shell_exec", "command=grep -r KEY ."}},
		{"confirm", []string{"read_file", "path=.env"}},
		{"confirm", []string{"read_file", "path=" + filepath.Join(h.dir, "ws", "a", "..", ".env")}},
		{"confirm", []string{"git_show", "path=.env", "content=true"}},
		{"confirm", []string{"git_diff", `files=[".env"]`}},
		{"allow", []string{"shell_exec", "command=git status --porcelain"}},
		{"allow", []string{"shell_exec", "command=cat hello.txt"}},
		{"allow", []string{"read_file", "path=hello.txt"}},
		{"allow", []string{"search_content", "pattern=KEY"}},
	} {
		if said := h.ok(t, append([]string{"explain"}, tt.call...)...); !strings.HasPrefix(said, tt.verdict+": ") {
			t.Errorf("explain %q says\n%swant %s", tt.call, said, tt.verdict)
		}
	}
	if said := h.ok(t, "explain", "read_file", "path=.env"); !strings.Contains(said, `paths.sensitive ".env"`) {
		t.Errorf("explain says\n%swant the pattern", said)
	}
}
