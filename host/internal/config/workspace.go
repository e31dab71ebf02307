package config

import (
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/sdk/tool"
)

// callerMark stands for the name of the user while the workspace is evaluated. No file can
// contain it, and a function that changes it is noticed.
const callerMark = "\x01User\x01"

// workspace reads the workspace, which every configuration must name, and the content of new
// ones.
func (d *decoder) workspace(attr, template *hcl.Attribute) (dirs workspace.Dirs) {
	d.ctx.Variables["caller"] = cty.ObjectVal(map[string]cty.Value{"user": cty.StringVal(callerMark)})
	defer delete(d.ctx.Variables, "caller")
	if d.absent(attr) || d.is(attr, "") {
		at := d.start()
		if attr != nil {
			at = attr.Expr.Range()
		}
		d.mistake(at, "Missing workspace",
			`The configuration names no directory for the tools to work in. Add workspace = "." for the directory of this file, or another path.`)
		return dirs
	}
	path, ok := d.directory(attr)
	if !ok {
		return dirs
	}
	if usesCaller(attr.Expr) {
		return d.userWorkspaces(attr, template, path)
	}
	if template != nil {
		d.mistake(template.NameRange, "Useless workspace_template", "The workspace exists already. A template is the content of each user's new one: workspace = \"/srv/work/${caller.user}\".")
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		d.mistake(attr.Expr.Range(), "No such directory", "The workspace must be an existing directory. Create it, or name another one.")
		return dirs
	}
	return workspace.Dirs{Shared: path}
}

// usesCaller reports whether an expression depends on the caller.
func usesCaller(expr hcl.Expression) bool {
	for _, traversal := range expr.Variables() {
		if traversal.RootName() == "caller" {
			return true
		}
	}
	return false
}

// userWorkspaces reads the place of the users' workspaces.
func (d *decoder) userWorkspaces(attr, template *hcl.Attribute, path string) (dirs workspace.Dirs) {
	parent, name := filepath.Split(path)
	prefix, suffix, found := strings.Cut(name, callerMark)
	if !found || strings.Contains(parent+suffix, callerMark) || strings.HasPrefix(prefix, ".") {
		d.mistake(attr.Expr.Range(), "Wrong workspace", `Expected ${caller.user} once, as it is, in the last name of the path, which does not begin with a dot: workspace = "/srv/work/${caller.user}".`)
		return dirs
	}
	parent = filepath.Clean(parent)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		d.mistake(attr.Expr.Range(), "No such directory", "The workspaces of users are made in %s, which must be an existing directory. Create it, or name another one.", parent)
		return dirs
	}
	if err := checkKeeper(parent, os.Geteuid()); err != nil {
		d.mistake(attr.Expr.Range(), "Writable by others", "No other account may make or exchange the workspaces of users: %v.", err)
		return dirs
	}
	dirs = workspace.Dirs{Parent: parent, Prefix: prefix, Suffix: suffix}
	dirs.Template, _ = d.directory(template)
	return dirs
}

// checkTemplate reports a directory that cannot be the content of new workspaces.
func (d *decoder) checkTemplate(attr *hcl.Attribute, cfg *Config) {
	template := cfg.Workspace.Template
	if template == "" {
		return
	}
	if info, err := os.Stat(template); err != nil || !info.IsDir() {
		d.mistake(attr.Expr.Range(), "No such directory", "A new workspace begins with the content of workspace_template, which must be an existing directory. Create it, or name another one.")
		return
	}
	if err := checkKeeper(template, os.Geteuid()); err != nil {
		d.mistake(attr.Expr.Range(), "Writable by others", "No other account may change what new workspaces begin with: %v.", err)
	}
	for _, place := range []struct{ path, what string }{{cfg.Workspace.Parent, "the workspaces of users"}, {cfg.StateDir, "the state of the host"}} {
		if place.path != "" && (within(place.path, template) || within(template, place.path)) {
			d.mistake(attr.Expr.Range(), "Wrong workspace_template", "It and the directory of %s (%s) must not contain each other. Name another directory.", place.what, place.path)
		}
	}
}

// workspaceQuota reads how much the workspace of a user may hold.
func (d *decoder) workspaceQuota(attr *hcl.Attribute) tool.ByteSize {
	size, ok := d.sizeWithin(attr, tool.MiB, math.MaxInt64, `a size of at least "1MiB"`)
	if ok && !d.dirs.PerUser() {
		d.mistake(attr.NameRange, "Useless workspace_quota", `It has a meaning only if each user has a workspace: workspace = "/srv/work/${caller.user}".`)
		return 0
	}
	return size
}

// scopeOfWorkspace gives a plugin that sees the workspaces of single users a process for each, and
// reports one that cannot work in them.
func (d *decoder) scopeOfWorkspace(p *supervisor.Plugin, block pluginBlock, enabled bool) {
	c := &p.Confinement
	if !d.dirs.PerUser() || !enabled || c.Workspace == sandbox.NoWorkspace && c.Isolation != sandbox.Off {
		return
	}
	switch {
	case d.absent(block.IsolationScope):
		p.Scope = supervisor.PerUser
	case p.Scope == supervisor.Shared:
		d.mistake(block.IsolationScope.Expr.Range(), "One process for all users",
			`Each user has a workspace (%s), and a process sees one. Write isolation_scope = "user", or set filesystem.workspace of the plugin's sandbox to "none".`, d.dirs)
	}
	if c.RunAs.Mode == sandbox.RunAsUser {
		d.mistake(block.NameRange, "Closed workspace",
			"The sandbox of this plugin has run_as, and the workspace of a user is open to its owner only. Remove run_as: each process then runs as the owner of its workspace.")
	}
}

// checkWorker reports a user who calls tools and cannot have a workspace.
func (d *decoder) checkWorker(expr hcl.Expression, user string) {
	if _, err := d.dirs.Of(user); err != nil {
		d.mistake(expr.Range(), "No workspace", "Each user who calls tools works in a directory of that name (%s): %v. Rename the user.", d.dirs, err)
	}
}
