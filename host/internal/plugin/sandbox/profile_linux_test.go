package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestListedPathsOfOthers: what lies where another program may write leads where that
// one wants it to.
func TestListedPathsOfOthers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"shared", "shared/docs", "private"} {
		must(t, os.Mkdir(path(name), 0o755))
	}
	must(t, os.Symlink(path("private"), path("shared/out")))
	must(t, os.Symlink("docs", path("shared/in")))
	for name, refused := range map[string]bool{"shared/docs": false, "shared/in": false, "shared/out": true, "private": false, "shared": false} {
		p := Profile{Confinement: Confinement{Read: []string{path(name)}}, Shared: []string{path("shared")}}
		if err := p.checkPaths(); (err != nil) != refused {
			t.Errorf("%s: %v, want a refusal: %v", name, err, refused)
		}
	}
}

// TestListedFIFO: a FIFO in place of an executable blocks no one.
func TestListedFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "tool")
	must(t, unix.Mkfifo(fifo, 0o755))
	p := profile(t, "inspect")
	p.Confinement = Confinement{Isolation: Isolated, Exec: []string{fifo}, WarnOnMissing: true}
	if _, err := newLauncher(t).Try(t.Context(), p); err != nil { // it would wait forever
		t.Error(err)
	}
}

// TestNoListedPathIsHidden: what no program may see, as the state directory with its
// keys, is given away by no path that is listed, however the two are spelled.
func TestNoListedPathIsHidden(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"data", "srv", "srv/state", "srv/state/keys", "srv/state2"} {
		must(t, os.Mkdir(path(name), 0o755))
	}
	for name, target := range map[string]string{
		"direct": "srv/state", "below": path("srv/state/keys"), "above": "srv", "twice": "direct", "alias": "srv", "srv/state/out": path("data"),
	} {
		must(t, os.Symlink(target, path(name)))
	}
	read := func(p *Profile, path string) { p.Confinement.Read = []string{path} }
	for _, tt := range []struct {
		name    string
		list    func(p *Profile, path string)
		path    string
		hidden  string
		refused bool
	}{
		{"another directory", read, "data", "srv/state", false},
		{"one whose name begins the same", read, "srv/state2", "srv/state", false},
		{"it", read, "srv/state", "srv/state", true},
		{"what is in it", read, "srv/state/keys", "srv/state", true},
		{"what is above it", read, "srv", "srv/state", true},
		{"everything", read, "", "srv/state", true},
		{"a link to it", read, "direct", "srv/state", true},
		{"a link to a link to it", read, "twice", "srv/state", true},
		{"a link to what is in it", read, "below", "srv/state", true},
		{"a link to what is above it", read, "above", "srv/state", true},
		{"a link that leads out of it", read, "srv/state/out", "srv/state", true},
		{"hidden by a link", read, "srv/state", "direct", true},
		{"what is in it, hidden by a link", read, "srv/state/keys", "direct", true},
		{"what is above it, hidden by a link", read, "srv", "direct", true},
		{"a link above one that is yet to be made", read, "alias", "alias/later", true},
		{"to write", func(p *Profile, path string) { p.Confinement.Write = []string{path} }, "direct", "srv/state", true},
		{"to execute", func(p *Profile, path string) { p.Confinement.Exec = []string{path} }, "direct", "srv/state", true},
		{"as a workspace", func(p *Profile, path string) { p.Workspace = path }, "direct", "srv/state", true},
		{"words that are no paths", func(p *Profile, _ string) { p.Confinement.Exec = []string{ExecSystem, ExecTmp} }, "direct", "srv/state", false},
		// The plugin's own place is below the state directory.
		{"as its own", func(p *Profile, path string) { p.Own = []string{path} }, "srv/state/keys", "srv/state", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Profile{Hidden: []string{path("nowhere"), path(tt.hidden)}}
			tt.list(&p, path(tt.path))
			err := p.checkPaths()
			if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "no program may see") {
				t.Errorf("checkPaths() with %s listed and %s hidden = %v, want a refusal: %v", tt.path, tt.hidden, err, tt.refused)
			}
		})
	}
}
