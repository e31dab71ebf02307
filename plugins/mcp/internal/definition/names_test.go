package definition_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/mcp/internal/definition"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 500)
	for _, tt := range []struct{ prefix, original, want string }{
		{"github", "create_issue", "github_create_issue"},
		{"github", "createIssue", "github_create_issue"},
		{"github", "create-issue", "github_create_issue"},
		{"github", "repos/create.issue", "github_repos_create_issue"},
		{"github", "HTTPGet", "github_httpget"},
		{"github", "v2List", "github_v2_list"},
		{"", "read_file", "read_file"},
		{"", "7zip", "tool_7zip"},
		{"", "_private", "tool__private"},
		{"x", "trailing_", "x_trailing_"},
		{"x", long, "x_" + strings.Repeat("a", 53) + "_69206a47"},
		{"x", "r\u0435ad", "x_r_ad_e0d37576"}, // a Cyrillic letter
		{"x", "read\u200b", "x_read_10e0ffb4"},
		{"x", "", "x_e3b0c442"},
		{"", "...", "tool_ab5df625"},
		{"x", "\xff", "x_a8100ae6"},
	} {
		got := definition.Name(tt.prefix, tt.original)
		if got != tt.want {
			t.Errorf("Name(%q, %.40q) = %s, want %s", tt.prefix, tt.original, got, tt.want)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("x", "readFile")
	f.Add("", "\u202egpj.exe")
	f.Add("p", strings.Repeat("_", 100))
	f.Fuzz(func(t *testing.T, prefix, original string) {
		if !tool.ValidName(prefix) || len(prefix) > definition.MaxPrefix {
			prefix = ""
		}
		got := definition.Name(prefix, original)
		if !tool.ValidName(got) {
			t.Errorf("Name(%q, %q) = %q, which is not valid", prefix, original, got)
		}
		if got != definition.Name(prefix, original) {
			t.Errorf("Name(%q, %q) is not stable", prefix, original)
		}
		if len(original) <= 20 && tool.ValidName(original) && prefix == "" && got != original {
			t.Errorf("Name(%q) = %q, want it unchanged", original, got)
		}
	})
}
