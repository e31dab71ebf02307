package lock_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/sdk/tool"
)

func define(t *testing.T, spec tool.Spec) lock.Definition {
	t.Helper()
	d, err := lock.Define(spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func spec(name string) tool.Spec {
	return tool.Spec{Name: name, Description: "Does it.", Tier: tool.ReadOnly, Foreign: true, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// TestDefinition checks which properties of a tool are part of its definition.
func TestDefinition(t *testing.T) {
	t.Parallel()
	base := define(t, spec("a")).Digest()
	for _, tt := range []struct {
		name   string
		change func(*tool.Spec)
		same   bool
	}{
		{"nothing", func(*tool.Spec) {}, true},
		{"white space of the schema", func(s *tool.Spec) { s.InputSchema = json.RawMessage(`{ "type" : "object" }`) }, true},
		{"limits", func(s *tool.Spec) { s.Timeout, s.MaxOutput, s.MaxConcurrency = time.Minute, 5, 1 }, true},
		{"whether it is available", func(s *tool.Spec) { s.Unavailable = "no token" }, true},
		{"name", func(s *tool.Spec) { s.Name = "b" }, false},
		{"title", func(s *tool.Spec) { s.Title = "A" }, false},
		{"description", func(s *tool.Spec) { s.Description += "\u200b" }, false},
		{"search hint", func(s *tool.Spec) { s.SearchHint = "x" }, false},
		{"schema", func(s *tool.Spec) { s.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`) }, false},
		{"output schema", func(s *tool.Spec) { s.OutputSchema = json.RawMessage(`{"type":"object"}`) }, false},
		{"alias", func(s *tool.Spec) { s.Aliases = []string{"b"} }, false},
		{"tier", func(s *tool.Spec) { s.Tier = tool.Privileged }, false},
		{"tier rule", func(s *tool.Spec) { s.TierWhen = []tool.TierRule{{Property: "x", Tier: tool.ReadOnly}} }, false},
		{"idempotent", func(s *tool.Spec) { s.Idempotent = true }, false},
		{"destructive", func(s *tool.Spec) { s.Destructive = true }, false},
		{"open world", func(s *tool.Spec) { s.OpenWorld = true }, false},
		{"asks", func(s *tool.Spec) { s.Asks = true }, false},
		{"cacheable", func(s *tool.Spec) { s.Cacheable = true }, false},
		{"preview", func(s *tool.Spec) { s.HasPreview = true }, false},
		{"core", func(s *tool.Spec) { s.Core = true }, false},
		{"foreign", func(s *tool.Spec) { s.Foreign = false }, false},
	} {
		changed := spec("a")
		tt.change(&changed)
		if got := define(t, changed).Digest() == base; got != tt.same {
			t.Errorf("change of %s: same definition is %v, want %v", tt.name, got, tt.same)
		}
	}
}

func newFile(t *testing.T) lock.File {
	t.Helper()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	return lock.File{Path: filepath.Join(dir, "config.lock.json"), StateDir: state}
}

func accept(t *testing.T, f lock.File, plugin string, specs ...tool.Spec) {
	t.Helper()
	if _, err := f.Update(t.Context(), func(l *lock.Lock) error {
		for _, s := range specs {
			l.Accept(plugin, define(t, s))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, f lock.File) lock.Content {
	t.Helper()
	now, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// TestRoundTrip checks that the file keeps what was accepted, and its mode and other members.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	if now := load(t, f); now.Locked("github") || len(now.Plugins) > 0 {
		t.Errorf("a missing file holds %v", now.Plugins)
	}
	strange := spec("github_b")
	strange.Description = "Does <it> & more.\u202e"
	accept(t, f, "github", spec("github_a"), strange)
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info, err)
	}
	if err := os.Chmod(f.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Update(t.Context(), func(l *lock.Lock) error {
		l.SetPackage("github", json.RawMessage(`{"version":"1.2.3"}`))
		l.Forget("github", "github_a")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v; want 0644", info, err)
	}
	for _, want := range []string{`Does <it> & more.\u202e`, "\n        \"github_b\": {\n          \"sha256\": \"" + strings.TrimPrefix(define(t, strange).Digest(), "sha256:")} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
	now := load(t, f)
	if d, ok := now.Accepted("github", "github_b"); !ok || d.Digest() != define(t, strange).Digest() {
		t.Errorf("accepted %v, %v", d, ok)
	}
	if diff := cmp.Diff([]string{"github_b"}, now.Tools("github")); diff != "" {
		t.Error(diff)
	}
	if got := string(now.Plugins["github"].Package); got != `{"version":"1.2.3"}` {
		t.Errorf("package %s", got)
	}
	if _, err := f.Update(t.Context(), func(l *lock.Lock) error { l.Forget("github", "github_b"); return nil }); err != nil {
		t.Fatal(err)
	}
	if !load(t, f).Locked("github") {
		t.Error("a plugin without tools is no longer locked")
	}
}

// TestMistakes checks that a wrong file is refused with its name and the place.
func TestMistakes(t *testing.T) {
	t.Parallel()
	d := define(t, spec("a"))
	entry := func(sum, definition string) string {
		return fmt.Sprintf(`{"version":1,"plugins":{"p":{"tools":{"a":{"sha256":%q,"definition":%s}}}}}`, sum, definition)
	}
	sum := strings.TrimPrefix(d.Digest(), "sha256:")
	for _, tt := range []struct{ name, text, want string }{
		{"not JSON", `{`, "unexpected end"},
		{"a list", `[]`, "expected an object"},
		{"no version", `{"plugins":{}}`, "version: expected 1"},
		{"a later version", `{"version":2,"plugins":{}}`, "version: expected 1; a newer toolhost"},
		{"an unknown key", `{"version":1,"plugins":{},"x":1}`, `unknown key x`},
		{"a key in capitals", `{"version":1,"Plugins":{}}`, `unknown key Plugins`},
		{"no plugins", `{"version":1}`, `plugins: expected an object`},
		{"a duplicate", `{"version":1,"plugins":{"p":{},"p":{}}}`, `duplicate property`},
		{"a wrong plugin", `{"version":1,"plugins":{"P":{}}}`, `not the name of a plugin`},
		{"an unknown key of a plugin", `{"version":1,"plugins":{"p":{"x":1}}}`, `plugins.p: unknown key x, expected tools or package`},
		{"a wrong tool", `{"version":1,"plugins":{"p":{"tools":{"A":{}}}}}`, `not the name of a tool`},
		{"no digest", `{"version":1,"plugins":{"p":{"tools":{"a":{}}}}}`, `plugins.p.tools.a.sha256: expected 64`},
		{"a digest in capitals", entry(strings.ToUpper(sum), string(d.JSON())), `plugins.p.tools.a.sha256: expected 64`},
		{"another digest", entry(strings.Repeat("0", 64), string(d.JSON())), `plugins.p.tools.a.sha256: it is 000`},
		{"an edited definition", entry(sum, strings.Replace(string(d.JSON()), "Does", "Did", 1)), `the file was edited by hand`},
		{"another name", `{"version":1,"plugins":{"p":{"tools":{"b":{"sha256":"` + sum + `","definition":` + string(d.JSON()) + `}}}}}`, `plugins.p.tools.b.definition: its name is "a"`},
		{"a large package", `{"version":1,"plugins":{"p":{"package":"` + strings.Repeat("x", 70<<10) + `"}}}`, `plugins.p.package: `},
	} {
		f := newFile(t)
		if err := os.WriteFile(f.Path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.Load()
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "config.lock.json") {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		if _, err := f.Update(t.Context(), func(*lock.Lock) error { return nil }); err == nil {
			t.Errorf("%s: a wrong file was replaced", tt.name)
		}
	}
}

// TestUnreadable checks that what is no regular file is refused at once.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	if err := os.Mkdir(f.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}

// TestLink checks that a symbolic link stays one.
func TestLink(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	target := filepath.Join(f.StateDir, "there.json")
	if err := os.Symlink(target, f.Path); err != nil {
		t.Fatal(err)
	}
	accept(t, f, "p", spec("a"))
	if got, err := os.Readlink(f.Path); err != nil || got != target {
		t.Errorf("link to %q, %v", got, err)
	}
	if !load(t, f).Locked("p") {
		t.Error("nothing was accepted")
	}
}

// TestWriters checks that writers at the same time keep each other's entries.
func TestWriters(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	const writers = 8
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() { accept(t, f, fmt.Sprintf("p%d", i), spec("a")) })
	}
	all.Wait()
	if got := len(load(t, f).Plugins); got != writers {
		t.Errorf("%d plugins are locked, want %d", got, writers)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(f.Path), ".lock-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestGuarded checks that a file does not count which a plugin could have made or changed.
func TestGuarded(t *testing.T) {
	t.Parallel()
	evil := newFile(t)
	accept(t, evil, "p", spec("evil"))
	planted, err := os.ReadFile(evil.Path)
	if err != nil {
		t.Fatal(err)
	}
	plant := func(f lock.File) {
		if err := os.WriteFile(f.Path, planted, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		before []tool.Spec
		change func(lock.File)
	}{
		{"made", nil, plant},
		{"changed", []tool.Spec{spec("good")}, plant},
		{"removed", []tool.Spec{spec("good")}, func(f lock.File) {
			if err := os.Remove(f.Path); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		f := newFile(t)
		if tt.before != nil {
			accept(t, f, "p", tt.before...)
		}
		want := load(t, f).Tools("p")
		if err := f.Guard(); err != nil {
			t.Fatal(err)
		}
		tt.change(f)
		if err := f.Release(); err != nil {
			t.Fatal(err)
		}
		if err := f.Guard(); err != nil { // the next host
			t.Fatal(err)
		}
		now := load(t, f)
		if diff := cmp.Diff(want, now.Tools("p")); diff != "" || !now.Foreign {
			t.Errorf("%s: foreign %v, %s", tt.name, now.Foreign, diff)
		}
		if err := f.Trust("sha256:00"); err != nil || !load(t, f).Foreign {
			t.Errorf("%s: another digest is trusted, %v", tt.name, err)
		}
		accept(t, f, "q", spec("a"))
		now = load(t, f)
		if diff := cmp.Diff(want, now.Tools("p")); diff != "" || now.Foreign || !now.Locked("q") {
			t.Errorf("%s: after a change of the host: foreign %v, %s", tt.name, now.Foreign, diff)
		}
		plant(f)
		if err := f.Trust(load(t, f).Digest); err != nil {
			t.Fatal(err)
		}
		if now := load(t, f); now.Foreign || !cmp.Equal(now.Tools("p"), []string{"evil"}) {
			t.Errorf("%s: not trusted: %v", tt.name, now.Tools("p"))
		}
		if err := f.Release(); err != nil {
			t.Fatal(err)
		}
		accept(t, f, "p", spec("late")) // no host runs
		if now := load(t, f); now.Foreign || !cmp.Equal(now.Tools("p"), []string{"evil", "late"}) {
			t.Errorf("%s: without a host: %v", tt.name, now.Tools("p"))
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		configuration string
		isDir         bool
		want          string
	}{
		{"/a/config.hcl", false, "/a/config.lock.json"},
		{"/a/work.hcl", false, "/a/work.lock.json"},
		{"/a/b.d", true, "/a/b.d/config.lock.json"},
	} {
		if got := lock.Path(tt.configuration, tt.isDir); got != tt.want {
			t.Errorf("Path(%s) = %s, want %s", tt.configuration, got, tt.want)
		}
	}
}

// FuzzLoad checks that any file is refused or means the same after it was written again.
func FuzzLoad(f *testing.F) {
	d, err := lock.Define(spec("a"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"version":1,"plugins":{"p":{"package":{"a":1e5},"tools":{}}}}`))
	f.Add([]byte(`{"version":1,"plugins":{"p":{"tools":{"a":{"sha256":"` + strings.TrimPrefix(d.Digest(), "sha256:") + `","definition":` + string(d.JSON()) + `}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := newFile(t)
		if err := os.WriteFile(file.Path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := file.Load()
		if err != nil {
			return
		}
		if _, err := file.Update(t.Context(), func(*lock.Lock) error { return nil }); err != nil {
			t.Fatalf("cannot be written again: %v", err)
		}
		after := load(t, file)
		if diff := cmp.Diff(flat(before.Lock), flat(after.Lock)); diff != "" {
			t.Error(diff)
		}
	})
}

// flat describes a lock.
func flat(l lock.Lock) map[string]string {
	all := map[string]string{}
	for name, p := range l.Plugins {
		all[name] = fmt.Sprint(string(p.Package), p.Tools == nil)
		for tool, d := range p.Tools {
			all[name+"."+tool] = d.Digest()
		}
	}
	return all
}
