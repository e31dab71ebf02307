package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// owner is the ordinary user who owns the workspace of a root host: as whom its
// plugins run.
const owner = 61234

// scene is the environment of one attempt: directories of a host, a plugin and others. They are
// not in a temporary directory, which a sandbox replaces.
type scene struct {
	t   *testing.T
	dir string

	home      string // owned by the host's user, with a secret that no plugin may know
	workspace string // may be written
	own, tmp  string // of the plugin
	other     string // another plugin's directory, of the same user
	state     string // hidden
	secret    string // the content of all files that it must not read
}

var scenes atomic.Int64

// newArena makes the directory that holds the scenes.
func newArena() (string, error) {
	var err error
	for _, place := range []string{"/var/lib", os.Getenv("HOME"), "."} {
		if place, err = filepath.Abs(place); err != nil {
			return "", err
		}
		var dir string
		if dir, err = os.MkdirTemp(place, ".toolhost-attack-*"); err == nil {
			return dir, os.Chmod(dir, 0o755)
		}
	}
	return "", fmt.Errorf("a directory is needed that is not in /tmp, e.g. the test's own: %w", err)
}

// For a test process that another test process started, and for people who want to see the
// programs' output.
const (
	arenaVariable   = "TOOLHOST_ATTACK_ARENA"
	verboseVariable = "TOOLHOST_ATTACK_VERBOSE"
)

// removeArena removes it when the test is over, if it is this process's.
func removeArena(t *testing.T) {
	t.Helper()
	if os.Getenv(arenaVariable) != "" {
		return
	}
	dir, err := newArena()
	must(t, err)
	t.Setenv(arenaVariable, dir)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
}

func newScene(t *testing.T) *scene {
	t.Helper()
	base := os.Getenv(arenaVariable)
	n := scenes.Add(1)
	s := &scene{t: t, dir: filepath.Join(base, fmt.Sprintf("%d-%d", os.Getpid(), n)), secret: fmt.Sprintf("hunter%d!", n)}
	must(t, os.Mkdir(s.dir, 0o755))
	must(t, os.Chmod(s.dir, 0o755))
	s.home = s.mkdir("home", 0o755)
	s.workspace = s.mkdir("workspace", 0o755)
	s.own, s.tmp, s.other = s.mkdir("own", 0o700), s.mkdir("tmp", 0o700), s.mkdir("other", 0o700)
	s.state = s.mkdir("state", 0o700)
	for _, dir := range []string{"home/.ssh", "workspace/.git", "workspace/.git/hooks", "workspace/bin"} {
		s.mkdir(dir, 0o755)
	}
	s.write("home/.ssh/id", s.secret, 0o600)
	s.write("home/public", s.secret, 0o644)
	s.write("state/approver.key", s.secret, 0o600)
	s.write("other/notes", s.secret, 0o600)
	s.write("workspace/.git/hooks/pre-commit", "true", 0o755)
	s.write("workspace/config.hcl", "strict", 0o644)
	s.write("workspace/bin/plugin", "honest", 0o755)
	if os.Geteuid() == 0 {
		s.give(s.workspace)
		s.give(s.own, s.tmp, s.other)
	}
	return s
}

// give makes everything below the directories the workspace's owner's.
func (s *scene) give(dirs ...string) {
	s.t.Helper()
	for _, dir := range dirs {
		must(s.t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, owner, owner)
		}))
	}
}

func (s *scene) close() { must(s.t, os.RemoveAll(s.dir)) }

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) mkdir(name string, mode os.FileMode) string {
	s.t.Helper()
	must(s.t, os.Mkdir(s.path(name), mode))
	must(s.t, os.Chmod(s.path(name), mode))
	return s.path(name)
}

func (s *scene) write(name, content string, mode os.FileMode) string {
	s.t.Helper()
	must(s.t, os.WriteFile(s.path(name), []byte(content), mode))
	must(s.t, os.Chmod(s.path(name), mode))
	return s.path(name)
}

// changed reports whether a file does not have this content any more.
func changed(path, content string) func(*testing.T, string) bool {
	return func(*testing.T, string) bool {
		got, err := os.ReadFile(path)
		return err != nil || string(got) != content
	}
}

// exists reports whether there is something at path.
func exists(path string) func(*testing.T, string) bool {
	return func(t *testing.T, _ string) bool {
		t.Helper()
		_, err := os.Lstat(path)
		if err == nil {
			must(t, os.Remove(path))
		}
		return err == nil
	}
}

// profile returns the profile of a plugin that may change the workspace and nothing else.
func (s *scene) profile(args []string) Profile {
	s.t.Helper()
	return Profile{
		Binary:      open(s.t, "/proc/self/exe"),
		Path:        "/opt/plugins/test",
		Args:        args,
		Env:         []string{"GORACE=atexit_sleep_ms=0"},
		Dir:         s.workspace,
		Workspace:   s.workspace,
		Own:         []string{s.own},
		Tmp:         s.tmp,
		Hidden:      []string{s.state},
		Protected:   []string{filepath.Join(s.workspace, "config.hcl"), filepath.Join(s.workspace, "bin")},
		Confinement: Confinement{Workspace: WriteWorkspace, Protect: []string{".git/hooks"}},
	}
}

// executes lets a plugin execute other programs.
func executes(p *Profile) {
	p.Confinement.Exec = []string{ExecSystem, ExecWorkspace, ExecTmp}
}

// pluginUID is who the plugin is, if it is confined.
func pluginUID() int {
	if os.Geteuid() == 0 {
		return owner
	}
	return os.Geteuid()
}

func modeOfFile(t *testing.T, path string) uint32 {
	t.Helper()
	var stat unix.Stat_t
	must(t, unix.Lstat(path, &stat))
	return stat.Mode
}
