package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forbidAttacks try to reach forbidden files where the plugin may read.
func forbidAttacks() []attack {
	const private = "workspace/a/private"
	// The program tries to print the secret from a forbidden directory or file.
	reading := func(program func(s *scene) []string, stage func(s *scene), patterns ...string) func(*scene) attempt {
		return func(s *scene) attempt {
			must(s.t, os.MkdirAll(s.path(private), 0o755))
			s.write(private+"/key", s.secret, 0o644)
			if stage != nil {
				stage(s)
			}
			s.giveWorkspace()
			return attempt{
				program: append([]string{"read"}, program(s)...), happened: printed(s.secret),
				profile: func(p *Profile) {
					for _, pattern := range patterns {
						p.Forbidden = append(p.Forbidden, os.Expand(pattern, func(string) string { return s.dir }))
					}
				},
			}
		}
	}
	key := func(s *scene) []string { return []string{s.path(private + "/key")} }
	return []attack{
		{name: "read a file in a forbidden directory", root: "is", stage: reading(key, nil, "**/private")},
		{name: "read a forbidden file through a symbolic link", root: "is", stage: reading(func(s *scene) []string {
			return []string{s.workspace + "/link", s.path(private + "/key")}
		}, nil, "$dir/workspace/a/private/key")},
		{name: "read a forbidden file by a hard link that was there before", root: "is", stage: reading(func(s *scene) []string {
			return []string{s.workspace + "/other"}
		}, func(s *scene) { must(s.t, os.Link(s.path(private+"/key"), s.workspace+"/other")) }, "**/private")},
		{name: "rename the directory around what is forbidden away", root: "is", stage: func(s *scene) attempt {
			staged := reading(key, nil, "**/private")(s)
			staged.program, staged.happened = []string{"rename", "a"}, changed(s.path(private+"/key"), s.secret)
			return staged
		}},
	}
}

// TestSearchForbidden: forbidden files are found only where a program may look. Files that the
// program needs are not hidden, and places where forbidden files may appear later are reported.
func TestSearchForbidden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"ws/.env", "ws/a/.env", "ws/a/b/private/x/.env", "ws/.git/.env", "ws/node_modules/m/.env", "ws/state/.env", "ws/own/.env",
		"data/keys/k.pem", "data/keys/sub/l.pem", "data/notes", "other/.env",
	} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	must(t, os.Symlink("../other", filepath.Join(dir, "ws/link")))
	must(t, os.Symlink("../other/.env", filepath.Join(dir, "ws/a/b/.env")))
	must(t, os.Symlink("data", filepath.Join(dir, "linked")))
	must(t, os.Link(filepath.Join(dir, "ws/a/b/private/x/.env"), filepath.Join(dir, "ws/harmless")))
	for _, tt := range []struct {
		patterns []string
		edit     func(p *Profile)
		bound    int
		want     []string
		beyond   []string
	}{
		{patterns: []string{"**/.env"}, want: []string{"ws/.env", "ws/.git/.env", "ws/a/.env", "ws/a/b/.env", "ws/a/b/private/x/.env", "ws/harmless", "ws/node_modules/m/.env"}},
		{patterns: []string{"/ws/a/**"}, want: []string{"ws/a", "ws/harmless"}},
		{patterns: []string{"/ws/a/b/*", "/ws/**/private"}, want: []string{"ws/a/b/.env", "ws/a/b/private", "ws/harmless"}},
		{patterns: []string{"/ws/new"}, want: []string{"ws/new"}},
		{patterns: []string{"/other"}, want: []string{"other"}},
		{patterns: []string{"/linked/notes"}, want: []string{"data/notes"}},
		{patterns: []string{"**/*.pem"}},
		{patterns: []string{"**/*.pem"}, edit: func(p *Profile) { p.Confinement.Read = []string{dir + "/data"} }, want: []string{"data/keys/k.pem", "data/keys/sub/l.pem"}},
		{patterns: []string{"/da*"}, edit: func(p *Profile) { p.Confinement.Read = []string{dir + "/data/keys"} }, want: []string{"data/keys"}},
		{patterns: []string{"/ws"}, want: []string{"ws/.env", "ws/.git", "ws/a", "ws/harmless", "ws/link", "ws/node_modules"}},
		{patterns: []string{"**/.env"}, edit: func(p *Profile) { p.Confinement.Workspace = NoWorkspace }},
		{patterns: []string{"**/.env"}, bound: 2, want: []string{"ws/.env", "ws/a/.env"}, beyond: []string{"ws/a/b", "ws/.git", "ws/node_modules"}},
	} {
		p := Profile{
			Workspace: dir + "/ws", Own: []string{dir + "/ws/own"}, Hidden: []string{dir + "/ws/state"},
			Confinement: Confinement{Workspace: ReadWorkspace},
		}
		for _, pattern := range tt.patterns {
			if pattern[0] == '/' {
				pattern = dir + pattern
			}
			p.Forbidden = append(p.Forbidden, pattern)
		}
		if tt.edit != nil {
			tt.edit(&p)
		}
		if tt.bound == 0 {
			tt.bound = maxSearched
		}
		found, beyond, _ := p.searchForbidden(tt.bound)
		for _, list := range []struct {
			what      string
			got, want []string
		}{{"found", found, tt.want}, {"not searched", beyond, tt.beyond}} {
			var got []string
			for _, path := range list.got {
				rel, err := filepath.Rel(dir, path)
				must(t, err)
				got = append(got, rel)
			}
			if diff := cmp.Diff(list.want, got); diff != "" {
				t.Errorf("%q, %s (-want +got):\n%s", tt.patterns, list.what, diff)
			}
		}
	}
}

// TestMuchIsForbidden: forbidden files that exceed what can be hidden are reported.
func TestMuchIsForbidden(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	for i := range maxFound + 1 {
		must(t, os.WriteFile(filepath.Join(ws, fmt.Sprintf("%d.key", i)), nil, 0o644))
	}
	p := Profile{Workspace: ws, Forbidden: []string{"**/*.key"}, Confinement: Confinement{Workspace: WriteWorkspace}}
	found, beyond, _ := p.searchForbidden(maxSearched)
	if len(found) != maxFound || !slices.Equal(beyond, []string{ws}) {
		t.Errorf("found %d, not searched: %q; want %d, and that %s holds more", len(found), beyond, maxFound, ws)
	}
}

// TestUnreadFolder: a folder that cannot be read was not searched. Its owner may open it
// again once it runs.
func TestUnreadFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "folder")
	must(t, os.WriteFile(folder, nil, 0o644)) // root cannot read it as a directory either
	s := &hiding{folders: []string{folder}}
	s.directory(folder)
	s.directory(filepath.Join(filepath.Dir(folder), "none"))
	if len(s.found) != 0 || !slices.Equal(s.unread, []string{folder}) {
		t.Errorf("hidden %q, not read %q; want %s to be not read", s.found, s.unread, folder)
	}
}

// TestMuchIsLinked: if there are more forbidden files than are checked for other names, that is
// reported.
func TestMuchIsLinked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, files := range map[string]int{"few": 1, "many": 5} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		for i := range files {
			must(t, os.WriteFile(filepath.Join(dir, name, strconv.Itoa(i)), nil, 0o644))
		}
	}
	s := &hiding{names: 4, linked: map[fileNumber]bool{}}
	for _, name := range []string{"few", "many"} {
		s.noteNames(filepath.Join(dir, name))
	}
	if want := []string{filepath.Join(dir, "many")}; !slices.Equal(s.unnoted, want) {
		t.Errorf("not all looked at: %q, want %q", s.unnoted, want)
	}
}
