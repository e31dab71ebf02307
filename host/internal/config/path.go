package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/internal/links"
)

// start returns the beginning of the first file, for mistakes about missing
// arguments.
func (d *decoder) start() hcl.Range {
	return hcl.Range{Filename: d.src.files[0].name, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// pluginDir reads plugin_dir. The default is where plugins are installed with the program
// of this host, otherwise the directory of the configuration.
func (d *decoder) pluginDir(attr *hcl.Attribute) string {
	if path, ok := d.directory(attr); ok {
		return path
	}
	if dir := InstalledPlugins(d.program); dir != "" {
		return dir
	}
	return d.src.dir
}

// InstalledPlugins returns the directory of the plugins that are installed with the program
// of a host: ../lib/toolhost/plugins, or plugins, as seen from the program's directory. It
// returns "" if neither exists.
func InstalledPlugins(program string) string {
	if program == "" {
		return ""
	}
	dir := filepath.Dir(program)
	for _, path := range []string{filepath.Join(dir, "..", "lib", "toolhost", "plugins"), filepath.Join(dir, "plugins")} {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return path
		}
	}
	return ""
}

// directory reads a path and makes it absolute.
func (d *decoder) directory(attr *hcl.Attribute) (string, bool) {
	path, ok := d.text(attr, "the path of a directory")
	if !ok || path == "" {
		return "", false
	}
	if strings.ContainsRune(path, 0) {
		d.mistake(attr.Expr.Range(), "Invalid path", "A path cannot hold a NUL character.")
		return "", false
	}
	return d.src.abs(path), true
}

// stateDir reads the state directory, and reports one that is in the workspace,
// where tools could change it, or around it.
func (d *decoder) stateDir(attr, workspaceAttr *hcl.Attribute, workspace string) (dir string, given bool) {
	dir, given = d.directory(attr)
	at := d.start()
	switch {
	case given:
		at = attr.Expr.Range()
	case workspaceAttr != nil:
		at = workspaceAttr.Expr.Range()
	}
	if !given {
		dir = defaultStateDir(d.opts.LookupEnv, os.Geteuid(), d.src.path)
	}
	switch {
	case dir == "":
		d.mistake(at, "No state directory", "The host's state has no default place, since neither XDG_STATE_HOME nor HOME is an absolute path. Add state_dir = \"...\".")
	case workspace == "":
	case within(workspace, dir):
		d.mistake(at, "State directory in the workspace",
			"The state directory (%s) must not be in the workspace (%s), where tools could change it. Set state_dir to another place, or choose a narrower workspace.", dir, workspace)
	case within(dir, workspace):
		d.mistake(at, "Workspace in the state directory",
			"The workspace (%s) must not be in the state directory (%s), which no tool can reach. Set state_dir to another place.", workspace, dir)
	}
	return dir, given
}

// defaultStateDir returns $XDG_STATE_HOME/toolhost/ID, /var/lib/toolhost/ID for root,
// or ~/.local/state/toolhost/ID. The ID depends on the path of the configuration, so
// that two configurations never share a state directory. It returns "" if there is
// no home directory.
func defaultStateDir(lookupEnv func(string) (string, bool), uid int, configPath string) string {
	sum := sha256.Sum256([]byte(configPath))
	id := hex.EncodeToString(sum[:6])
	if dir, _ := lookupEnv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolhost", id)
	}
	if uid == 0 {
		return filepath.Join("/var/lib/toolhost", id)
	}
	if home, _ := lookupEnv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local/state/toolhost", id)
	}
	return ""
}

// within reports whether path is dir or below it, with symbolic links resolved.
func within(dir, path string) bool {
	rel, err := filepath.Rel(links.Resolve(dir), links.Resolve(path))
	return err == nil && filepath.IsLocal(rel)
}

// StateDir returns the state directory of a configuration, even if the configuration
// has mistakes elsewhere: so a client finds a host that runs with the earlier content
// of the files. lookupEnv is as in [LoadOptions].
func StateDir(path string, lookupEnv func(name string) (value string, set bool)) (string, error) {
	if lookupEnv == nil {
		lookupEnv = os.LookupEnv
	}
	src, err := readSource(path)
	if err != nil {
		return "", err
	}
	d := newDecoder(src, LoadOptions{LookupEnv: lookupEnv})
	bodies, ok := d.parse()
	if !ok {
		return "", d.error()
	}
	if cfg := d.directories(d.blocks(bodies)); cfg.StateDir != "" {
		return cfg.StateDir, nil
	}
	return "", errors.Join(d.error(), errors.New("the configuration names no state directory"))
}
