package fetch

import (
	"net/url"
	"strings"
	"testing"
)

func TestRobotsRules(t *testing.T) {
	const file = "\xEF\xBB\xBFDisallow: /before-any-group\n" +
		"User-agent: *\r\nDisallow: /private # a comment\nCrawl-delay: soon\nthis is no line\nAllow: /private/open\nDisallow: /*.pdf$\nDisallow: /caf%c3%a9\n" +
		"Disallow: /a!b\nDisallow: /m$n\nDisallow: /two$$\nDisallow: /esc%24\nDisallow: /q?x=*&y\nDisallow:\nSitemap: https://example.com/s.xml\n\nDisallow: /still\n" +
		"User-Agent: BoatBot/2.1\nUser-agent: other\nDisallow: /boats\n\nuser-agent: boatbot\nAllow: /boats/old\nUser-agent: free\nDisallow:\n"
	for _, tt := range []struct {
		agent, path string
		want        bool
	}{
		{"toolhost", "", true},
		{"toolhost", "/", true},
		{"toolhost", "/before-any-group", true},
		{"toolhost", "/private", false},
		{"toolhost", "/privateer", false},
		{"toolhost", "/private/open/x", true},
		{"toolhost", "/%70rivate", false},
		{"toolhost", "/x/../private", false},
		{"toolhost", "/x/%2e%2e/private", false},
		{"toolhost", "//private", false},
		{"toolhost", "/./private/x", false},
		{"toolhost", "/x%2Fprivate", true},
		{"toolhost", "/a.pdf", false},
		{"toolhost", "/a/b.pdf?x", true},
		{"toolhost", "/a.pdf/", true},
		{"toolhost", "/a.pdf.pdf", false},
		{"toolhost", "/café/x", false},
		{"toolhost", "/caf%C3%A9", false},
		{"toolhost", "/a%21b", false},
		{"toolhost", "/q?x=1&y=2", false},
		{"toolhost", "/q?x=1", true},
		{"toolhost", "/m$n/x", false},
		{"toolhost", "/m%24n", false},
		{"toolhost", "/m", true},
		{"toolhost", "/two$", false},
		{"toolhost", "/two$/x", true},
		{"toolhost", "/esc$/x", false},
		{"toolhost", "/still", false},
		{"toolhost", "/boats", true},
		{"boatbot", "/boats", false},
		{"BOATBOT", "/boats/old", true},
		{"boatbot", "/private", true},
		{"other", "/boats/old", false},
		{"free", "/private", true},
		{"boat", "/boats", true},
	} {
		u, err := url.Parse("https://example.com" + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := rulesFor(tt.agent, []byte(file)).allow(u); got != tt.want {
			t.Errorf("%s may read %q: %v, want %v", tt.agent, tt.path, got, tt.want)
		}
	}
	for _, text := range []string{"", "\n", "<!doctype html>\n<a href=\"https://example.com\">Disallow: x</a>\n", "User-agent: *", "\x00\xff:\n"} {
		if !rulesFor("toolhost", []byte(text)).allow(&url.URL{Path: "/x"}) {
			t.Errorf("%q forbids something", text)
		}
	}
}

// FuzzRobots: no robots.txt makes it panic, and one way to write an address is like
// another.
func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a*b$\nAllow: /%41", "/a%42b")
	f.Fuzz(func(t *testing.T, text, path string) {
		rules := rulesFor("toolhost", []byte(text))
		u := &url.URL{Path: path}
		escaped := &url.URL{Path: path, RawPath: escapeAll(path)}
		if rules.allow(u) != rules.allow(escaped) {
			t.Errorf("%q forbids one of %q and %q", text, u.EscapedPath(), escaped.EscapedPath())
		}
	})
}

// escapeAll escapes every letter and digit of a path.
func escapeAll(path string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(path, "/") {
		if out.Len() > 0 || part == "" {
			out.WriteByte('/')
		}
		for _, c := range []byte(part) {
			out.WriteString("%" + strings.ToUpper(string("0123456789abcdef"[c>>4])+string("0123456789abcdef"[c&15])))
		}
	}
	return out.String()
}
