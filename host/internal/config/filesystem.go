package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/protect"
)

// The use of a path by a plugin: the name of the list that holds it.
const (
	useRead  = "read"
	useWrite = "write"
	useExec  = "exec"
)

// sandboxPath is a path that a sandbox grants to plugins. [hostPaths] checks it when
// the rest of the configuration is known.
type sandboxPath struct {
	use  string
	path string // absolute
	at   hcl.Range
}

// filesystem reads a plugin's access to files.
func (d *decoder) filesystem(c *confinement, block filesystemBlock) {
	access := map[string]sandbox.WorkspaceAccess{
		"none": sandbox.NoWorkspace, "ro": sandbox.ReadWorkspace, "rw": sandbox.WriteWorkspace,
	}
	if word, ok := d.choice(block.Workspace, "none", "ro", "rw"); ok {
		c.access.Workspace, c.said.workspace = access[word], block.Workspace
	}
	if !d.absent(block.Read) {
		c.access.Read = d.sandboxPaths(block.Read, useRead)
	}
	if !d.absent(block.Write) {
		before := len(d.paths)
		c.access.Write = d.sandboxPaths(block.Write, useWrite)
		c.said.writes = slices.Clone(d.paths[before:])
	}
	if !d.absent(block.Exec) {
		c.access.Exec = d.exec(c, block.Exec)
	}
	if !d.absent(block.Protect) {
		c.access.Protect, c.access.Presets = d.protect(block.Protect)
		d.warnProtect(c, block.Protect)
	}
}

// execWords are words in exec that mean paths.
var execWords = []string{sandbox.ExecSystem, sandbox.ExecWorkspace, sandbox.ExecHome, sandbox.ExecTmp}

// exec reads the paths that a plugin may execute, and words that mean paths.
func (d *decoder) exec(c *confinement, attr *hcl.Attribute) []string {
	c.said.exec, c.said.execWorkspace = attr, nil
	var list []string
	for _, w := range d.words(attr, `a list of paths and words such as ["system", "/opt/git/bin"]`) {
		entry, bare := w.text, w.text != "" && !strings.Contains(w.text, "/") && w.text != "." && w.text != ".." && w.text != "~"
		switch {
		case bare && !slices.Contains(execWords, entry):
			d.mistake(w.expr.Range(), "Unknown word", "Expected %s, or a path with a slash such as \"./bin\", not %s.%s",
				diag.Words(execWords), quote(w.expr, entry), diag.DidYouMean(entry, execWords))
			continue
		case !bare:
			var ok bool
			if entry, ok = d.sandboxPath(w, useExec); !ok {
				continue
			}
		case entry == sandbox.ExecWorkspace:
			c.said.execWorkspace = &w
		}
		list = d.addTo(list, entry, w)
	}
	return list
}

// sandboxPaths reads a list of paths.
func (d *decoder) sandboxPaths(attr *hcl.Attribute, use string) []string {
	var list []string
	for _, w := range d.words(attr, `a list of paths such as ["/usr/share/zoneinfo"]`) {
		if slices.Contains(execWords, w.text) {
			d.mistake(w.expr.Range(), "Not a path", "%s stands for paths only in exec. For a path of this name, write \"./%s\".", quote(w.expr, w.text), w.text)
			continue
		}
		if path, ok := d.sandboxPath(w, use); ok {
			list = d.addTo(list, path, w)
		}
	}
	return list
}

// sandboxPath makes one path absolute and records it for [hostPaths].
func (d *decoder) sandboxPath(w word, use string) (string, bool) {
	switch {
	case w.text == "":
		d.mistake(w.expr.Range(), "Empty path", "Expected a path: absolute, or relative to the directory of this file.")
	case strings.ContainsRune(w.text, 0):
		d.mistake(w.expr.Range(), "Invalid path", "A path cannot hold a NUL character.")
	case w.text == "~" || strings.HasPrefix(w.text, "~/"):
		d.mistake(w.expr.Range(), "Relative path", "~ has no meaning in a path: this one is relative to the directory of this file. For the home directory, write pathexpand(%s).",
			quote(w.expr, w.text))
	case d.notExpanded(w):
	default:
		path := d.src.abs(w.text)
		d.warnPath(w, use, path)
		d.warnMissing(w, use, path)
		d.paths = append(d.paths, sandboxPath{use: use, path: path, at: w.expr.Range()})
		return path, true
	}
	return "", false
}

// protect reads the paths that a plugin cannot change in the workspace, and words for names
// anywhere in it.
func (d *decoder) protect(attr *hcl.Attribute) (list, presets []string) {
	for _, w := range d.words(attr, `a list of words and paths in the workspace such as ["git", "conf/live.yaml"]`) {
		switch path := filepath.Clean(w.text); {
		case slices.Contains(protect.Presets(), w.text):
			presets = d.addTo(presets, w.text, w)
		case !strings.ContainsAny(w.text, "/.") && diag.DidYouMean(w.text, protect.Presets()) != "":
			d.mistake(w.expr.Range(), "Unknown word", "Expected %s or a path in the workspace, not %s.%s For a file of this name, write %q.",
				diag.Words(protect.Presets()), quote(w.expr, w.text), diag.DidYouMean(w.text, protect.Presets()), "./"+w.text)
		case strings.ContainsRune(w.text, 0):
			d.mistake(w.expr.Range(), "Invalid path", "A path cannot hold a NUL character.")
		case w.text != "" && path == ".":
			d.mistake(w.expr.Range(), "Workspace protected", `This is the whole workspace. To keep all of it unchanged, write workspace = "ro".`)
		case !filepath.IsLocal(w.text) || slices.Contains(strings.Split(w.text, "/"), ".."):
			d.mistake(w.expr.Range(), "Path outside the workspace",
				"Expected a path relative to the workspace, without \"..\", such as \".git/hooks\", not %s. Plugins cannot change other paths unless write lists them.",
				quote(w.expr, w.text))
		default:
			list = d.addTo(list, path, w)
		}
	}
	return list, presets
}

// addTo adds an entry to a list, or reports that the list has it.
func (d *decoder) addTo(list []string, entry string, w word) []string {
	if slices.Contains(list, entry) {
		d.mistake(w.expr.Range(), "Duplicate entry", "%s is already in the list.", quote(w.expr, w.text))
		return list
	}
	return append(list, entry)
}
