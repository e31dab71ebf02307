package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/protect"
)

// systemDirs hold the programs of a machine and their configuration. A plugin that can
// change them can make programs of other users run anything.
//
//nolint:gochecknoglobals // a table
var systemDirs = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/libexec",
	"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/etc", "/boot", "/var/spool/cron",
}

// inSystem reports whether a path belongs to the system, or holds such a path.
func inSystem(path string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return within(dir, path) || within(path, dir) })
}

// sockets are those of daemons that start programs as root for every client.
var sockets = []string{ //nolint:gochecknoglobals // a table
	"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock",
}

// warnPath warns about a path that a plugin gets.
func (d *decoder) warnPath(w word, use, path string) {
	said := quote(w.expr, w.text)
	isSocket := slices.ContainsFunc(sockets, func(socket string) bool { return within(path, socket) || filepath.Base(path) == filepath.Base(socket) })
	switch {
	case isSocket:
		d.warn(w.expr.Range(), "%s: %s gives the plugin the socket of a container engine, with which it can start a container that reaches the whole machine. Remove it.", use, said)
	case use != useWrite:
	case inSystem(path):
		d.warn(w.expr.Range(), "write: %s belongs to the system, whose programs run or read its files. Name a directory for the plugin alone.", said)
	case slices.ContainsFunc(d.searched(), func(dir string) bool { return within(dir, path) || within(path, dir) }):
		d.warn(w.expr.Range(), "write: %s is in PATH, so you may run programs that the plugin writes there. Name another directory.", said)
	}
}

// searched returns the absolute directories of PATH.
func (d *decoder) searched() []string {
	list, _ := d.opts.LookupEnv("PATH")
	return slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// warnProtect warns about a list that protects less than the default.
func (d *decoder) warnProtect(c *confinement, attr *hcl.Attribute) {
	if c.access.Workspace != sandbox.WriteWorkspace || len(c.access.Presets) > 0 {
		return
	}
	words := strings.Join(diag.Quoted(protect.Presets()), ", ")
	if len(c.access.Protect) == 0 {
		d.warn(attr.NameRange, "protect is empty: the plugin may change files in the workspace that git, editors and agents run. Remove it for the default %s.", words)
		return
	}
	d.warn(attr.NameRange, "protect lists only paths and replaces the default %s, so those names are not protected. Add the words that you need.", words)
}

// warnConfinement warns about arguments of a sandbox that are unsafe together.
func (d *decoder) warnConfinement(c *confinement) {
	if c.access.Isolation == sandbox.Off && c.said.isolation != nil && (len(c.access.Exec) > 0 || len(c.said.writes) > 0 || c.said.workspace != nil || c.said.network != nil) {
		d.warn(c.said.isolation.Expr.Range(), `isolation = "off" does not enforce filesystem and network: the plugin can read, change and execute whatever the host's account can. Write "auto".`)
		return
	}
	for _, w := range c.said.writes {
		for _, exec := range c.access.Exec {
			if filepath.IsAbs(exec) && !inSystem(w.path) && (within(exec, w.path) || within(w.path, exec)) {
				d.warn(w.at, "write: the plugin may also execute %s, and so the programs that it writes there. Name another directory in one of the two.", exec)
			}
		}
	}
}

// usuallySecret matches names of variables that usually hold secrets.
var usuallySecret = regexp.MustCompile(`(?i)(SECRET|TOKEN|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|_KEY$|_PAT$)`)

// warnPass warns about a variable of the host that a plugin gets.
func (d *decoder) warnPass(w word) {
	ofCommit := strings.HasPrefix(w.text, "GIT_AUTHOR_") || strings.HasPrefix(w.text, "GIT_COMMITTER_")
	switch {
	case protect.Variable(w.text) && !ofCommit:
		d.warn(w.expr.Range(), "env: %s makes programs, including the plugin, load or run other code. Remove it.", quote(w.expr, w.text))
	case usuallySecret.MatchString(w.text):
		d.warn(w.expr.Range(), "env: %s usually holds a secret, which every program of the plugin can read. Write it into a secret block, and list that in secrets of the plugin.",
			quote(w.expr, w.text))
	}
}

// warnWorkspace warns about a workspace that holds more than a project.
func (d *decoder) warnWorkspace(attr *hcl.Attribute, path string) {
	home, _ := d.opts.LookupEnv("HOME")
	isHome := path == "/root" || filepath.Dir(path) == "/home" || filepath.IsAbs(home) && within(path, home)
	switch {
	case inSystem(path):
		d.warn(attr.Expr.Range(), "workspace: %s belongs to the system, and tools may change its files. Name the directory of a project.", path)
	case isHome:
		d.warn(attr.Expr.Range(), "workspace: %s is or holds a home directory, where tools reach keys and start-up files. Name the directory of a project.", path)
	}
}
