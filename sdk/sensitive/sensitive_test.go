package sensitive_test

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/sensitive"
)

func defaults(tb testing.TB) sensitive.Patterns {
	tb.Helper()
	all, err := sensitive.Parse(sensitive.Default())
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path, folder string
		want         string // the pattern
	}{
		{path: "/ws/.env", want: ".env"},
		{path: "/ws/a/.ENV", want: ".env"},
		{path: "/ws/.env/x", want: ".env"},
		{path: "/ws/.env.local", want: ".env.*"},
		{path: "/ws/.env.example"},
		{path: "/ws/.env.template"},
		{path: "/ws/env"},
		{path: "/ws/server.pem", want: "*.pem"},
		{path: "/ws/id_rsa", want: "id_rsa"},
		{path: "/ws/id_rsa.pub"},
		{path: "/home/u/.ssh/id_ed25519.pub", want: ".ssh"},
		{path: "/home/u/.ssh/config", want: ".ssh"},
		{path: "/ws/id_generator.go"},
		{path: "/home/u/.docker/config.json", want: ".docker/config.json"},
		{path: "/ws/config.json"},
		{path: "/home/u/.kube/config", want: ".kube"},
		{path: "/etc/shadow", want: "/etc/shadow*"},
		{path: "/etc/shadow-", want: "/etc/shadow*"},
		{path: "/ws/etc/shadow"},
		{path: "/proc/self/environ", want: "/proc/*/environ"},
		{path: "/"},
		{path: "/home/u/.ssh/work/main.go", folder: "/home/u/.ssh/work"},
		{path: "/home/u/.ssh/work/.env", folder: "/home/u/.ssh/work", want: ".env"},
		{path: "/home/u/.docker/config.json", folder: "/home/u/.docker", want: ".docker/config.json"},
		{path: "/etc/shadow", folder: "/etc", want: "/etc/shadow*"},
		{path: "/ws/.env", folder: "/", want: ".env"},
	} {
		got, ok := defaults(t).Find(tt.path, tt.folder)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("Find(%q, %q) = %q, %v, want %q", tt.path, tt.folder, got, ok, tt.want)
		}
		if ok && !defaults(t).Touches(tt.path) {
			t.Errorf("Touches(%q) = false although Find covers it", tt.path)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		texts []string
		path  string // "" for an error
		want  bool
	}{
		{[]string{"**/.env"}, "/a/b/.env", true},
		{[]string{"**/a/b"}, "/x/a/b", true},
		{[]string{"private/**"}, "/x/private/a/b", true},
		{[]string{"/srv/a"}, "/srv/a/b", true},
		{[]string{"/srv/a"}, "/x/srv/a", false},
		{[]string{"*.pem", "!test.pem"}, "/x/test.pem", false},
		{[]string{"*.pem", "!/x/*.pem"}, "/x/y.pem", false},
		{[]string{"*.pem", "!/x/*.pem"}, "/y/y.pem", true},
		{[]string{`/w\[s\]. /a`}, "/w[s]. /a", true},
		{[]string{`/w\[s\]/a`}, "/ws/a", false},
		{[]string{`/\*\*/a`}, "/**/a/b", true},
		{[]string{`a\`}, "", false},
		{[]string{"a/**/b"}, "", false},
		{[]string{"[a"}, "", false},
		{[]string{""}, "", false},
		{[]string{"/"}, "", false},
	} {
		all, err := sensitive.Parse(tt.texts)
		if (err != nil) != (tt.path == "") {
			t.Errorf("Parse(%q) = %v", tt.texts, err)
			continue
		}
		if _, ok := all.Find(tt.path, ""); ok != tt.want {
			t.Errorf("Parse(%q).Find(%q) = %v, want %v", tt.texts, tt.path, ok, tt.want)
		}
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		glob string
		want sensitive.Overlap
	}{
		{"*", sensitive.Broad},
		{".*", sensitive.Broad},
		{"src/*", sensitive.Broad},
		{"*.go", sensitive.None},
		{"*/x.go", sensitive.None},
		{".e*", sensitive.Aimed},
		{".en?", sensitive.Aimed},
		{".en[v]", sensitive.Aimed},
		{"?env", sensitive.None},
		{"*env", sensitive.None},
		{"*.pem", sensitive.Aimed},
		{"s*.pem", sensitive.Aimed},
		{"te*", sensitive.Broad},
		{"cred*", sensitive.Aimed},
		{".s*/config", sensitive.Aimed},
		{"~/.ss?/x", sensitive.Aimed},
		{"/etc/shad*", sensitive.Aimed},
		{"/etc/*", sensitive.Broad},
		{"etc/passw?", sensitive.None},
		{"config*", sensitive.Broad},
		{".docker/conf*", sensitive.Aimed},
		{`\*`, sensitive.None},
		{"ID_R*", sensitive.Aimed},
		{"", sensitive.None},
		{"[", sensitive.None},
	} {
		if pattern, got := defaults(t).Overlap(tt.glob); got != tt.want {
			t.Errorf("Overlap(%q) = %v by %q, want %v", tt.glob, got, pattern, tt.want)
		}
	}
}

// FuzzOverlap: a glob that matches a covered name overlaps.
func FuzzOverlap(f *testing.F) {
	f.Add(".e*", "v")
	f.Add("[]a]*", "]")
	f.Fuzz(func(t *testing.T, glob, name string) {
		_, _ = defaults(t).Overlap(glob)
		if _, found := defaults(t).Find("/"+name, ""); found && !defaults(t).Touches(name) {
			t.Errorf("Find covers %q, which Touches does not", name)
		}
	})
}
