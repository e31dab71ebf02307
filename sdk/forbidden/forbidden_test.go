package forbidden_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/forbidden"
)

// TestCovers: a pattern covers its matches and everything below them, and nothing more.
func TestCovers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, path  string
		match, covered bool
	}{
		{"**/.ssh", "/.ssh", true, true},
		{"**/.ssh", "/home/a/.ssh", true, true},
		{"**/.ssh", "/home/a/.ssh/id", false, true},
		{"**/.ssh", "/home/a/.sshx", false, false},
		{"**/*.pem", "/a/b/c.pem", true, true},
		{"/w/private", "/w/private", true, true},
		{"/w/private", "/w/sub/private", false, false},
		{"/w/private/**", "/w/private", true, true},
		{"/w/*/key", "/w/a/b/key", false, false},
		{"/w/{a,b}", "/w/b/x", false, true},
		{`/w/\*`, "/w/x", false, false},
		{`/w/\*`, "/w/*", true, true},
		{"/w/Private", "/w/private", false, false},
		{"/w/[", "/w/[", false, false},
	} {
		one := forbidden.Patterns{"/elsewhere", tt.pattern}
		if one.Match(tt.path) != tt.match || one.Covers(tt.path) != tt.covered {
			t.Errorf("%s and %s: %v, %v, want %v, %v", tt.pattern, tt.path, one.Match(tt.path), one.Covers(tt.path), tt.match, tt.covered)
		}
	}
}

// TestSplit: a pattern without wildcards is a path, with its escapes removed.
func TestSplit(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][2]string{
		"**/.ssh":                          {"/", "**/.ssh"},
		"/w/private":                       {"/w/private", ""},
		"/w/a/**/b":                        {"/w/a", "**/b"},
		"/w/{a/b,c}/d":                     {"/w", "{a/b,c}/d"},
		forbidden.Literal(`/w [1]/{x}*\?`): {`/w [1]/{x}*\?`, ""},
	} {
		if dir, rest := forbidden.Split(pattern); dir != want[0] || rest != want[1] {
			t.Errorf("Split(%q) = %q, %q, want %q", pattern, dir, rest, want)
		}
	}
}

// TestSpellings: a pattern means what it says, and the same files where links lead.
func TestSpellings(t *testing.T) {
	t.Parallel()
	resolve := func(path string) string {
		rest, ok := strings.CutPrefix(path, "/srv/link")
		if ok {
			return "/data [1]" + rest
		}
		return path
	}
	real := forbidden.Literal("/data [1]")
	for _, tt := range []struct {
		folder, pattern string
		want            []string
	}{
		{"/w", "/etc/shadow", []string{"/etc/shadow"}},
		{"/w", "**/*.key", []string{"**/*.key"}},
		{"/w", "/srv/link/a/*.key", []string{"/srv/link/a/*.key", real + "/a/*.key"}},
		{"/w", "/srv/link", []string{"/srv/link"}},
		{"/srv/link/ada", "./private/**", []string{"/srv/link/ada/private/**", real + "/ada/private/**"}},
		{"/srv/link", "vault", []string{"/srv/link/vault", real + "/vault"}},
		{"", "vault", nil},
		{"", "/srv/link/*", []string{"/srv/link/*", real + "/*"}},
	} {
		if got := forbidden.Spellings(tt.folder, tt.pattern, resolve); !slices.Equal(got, tt.want) {
			t.Errorf("%s in %q: %q, want %q", tt.pattern, tt.folder, got, tt.want)
		}
	}
}
