// Package protect lists the names of files that make a program run other programs: the
// configuration and hooks of git repositories, of editors and of agents. A program that
// can write one of these files can make its user run anything. It also lists variables
// of the environment with the same effect.
//
// The package examines names only, not files. The host and package roots share it, so
// both protect the same files.
package protect

import (
	"slices"
	"strings"
)

// The presets. Each word selects names of files.
const (
	// Git is the configuration of repositories and their hooks.
	Git = "git"
	// Hooks are the files that git and similar programs run at a commit, a checkout
	// or a push.
	Hooks = "hooks"
	// Editor are the files that editors read, and shells that enter a directory.
	Editor = "editor"
	// Agents are the files that agents read.
	Agents = "agents"
)

// Presets returns all presets, which are the default.
func Presets() []string { return []string{Git, Hooks, Editor, Agents} }

// Names returns the names of files and directories that presets select, at any depth. [GitNames]
// returns the names in directories of git.
func Names(presets []string) []string {
	var all []string
	for preset, names := range map[string][]string{
		Hooks:  {".husky", ".pre-commit-config.yaml"},
		Editor: {".envrc", ".vscode", ".idea"},
		Agents: {".claude", ".mcp.json", ".cursor", ".codex"},
	} {
		if slices.Contains(presets, preset) {
			all = append(all, names...)
		}
	}
	slices.Sort(all)
	return all
}

// GitDir is the name of the git directory of a repository, or of a file with its path.
const GitDir = ".git"

// GitNames returns the names that presets select in a git directory, including those of a
// worktree, a submodule or a bare repository.
func GitNames(presets []string) []string {
	var all []string
	if slices.Contains(presets, Git) {
		all = append(all, "config", "config.worktree", "info", "commondir")
	}
	if slices.Contains(presets, Git) || slices.Contains(presets, Hooks) {
		all = append(all, "hooks")
	}
	return all
}

// Covers reports whether a name in the path is one that presets select, on any file system: it
// ignores case, trailing dots and invisible characters. The path is relative to the folder.
func Covers(presets []string, path string) bool {
	names, gitNames := Names(presets), GitNames(presets)
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part = Name(part); part != "" {
			parts = append(parts, part)
		}
	}
	for i, part := range parts {
		if slices.Contains(names, part) {
			return true
		}
		if part == GitDir && len(gitNames) > 0 && inGit(gitNames, parts[i+1:]) {
			return true
		}
	}
	return false
}

// Words returns the presets that cover a path. To change the file, all of them must be
// lifted.
func Words(presets []string, path string) []string {
	return slices.DeleteFunc(slices.Clone(presets), func(word string) bool { return !Covers([]string{word}, path) })
}

// inGit reports whether a path in a git directory is covered. The whole directory is covered,
// since a change of it includes its content. So are the git directories of submodules, whose
// names may contain slashes.
func inGit(names, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch path[0] {
	case "modules":
		return len(path) == 1 || slices.ContainsFunc(path[1:], func(part string) bool { return slices.Contains(names, part) })
	case "worktrees":
		return len(path) > 2 && slices.Contains(names, path[2])
	}
	return slices.Contains(names, path[0])
}

// Name returns the form of a name that file systems may treat as the same: it applies
// [Fold], removes dots and spaces at the end, and returns .git for the short name of that
// directory.
func Name(name string) string {
	name = strings.TrimRight(Fold(name), ". ")
	if name == "git~1" {
		return GitDir
	}
	return name
}
