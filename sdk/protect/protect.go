// Package protect knows the names of files that have a program run something when it
// is only used: the configuration and hooks of git repositories, of editors and of
// agents. A program that can write one of them can make its user run anything.
//
// It knows names alone and reads no file, and names of variables of the environment that
// do the same. The host and the package roots share it, so
// that what one of them protects the other does.
package protect

import (
	"slices"
	"strings"
)

// The presets: words that stand for names.
const (
	// Git is the configuration of repositories, with their hooks.
	Git = "git"
	// Hooks is what git and programs beside it run when something is committed,
	// checked out or pushed.
	Hooks = "hooks"
	// Editor is what editors, and shells that enter a directory, read there.
	Editor = "editor"
	// Agents is what agents read.
	Agents = "agents"
)

// Presets returns all presets, which is what is protected if nothing else is said.
func Presets() []string { return []string{Git, Hooks, Editor, Agents} }

// Names returns the names that presets stand for, wherever a file or directory bears
// them; those in git's own directories are [GitNames].
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

// GitDir is the name of a repository's own directory, or of a file that says where it
// is.
const GitDir = ".git"

// GitNames returns the names that presets stand for in a repository's own directory:
// that of a worktree, of a submodule, or of a bare repository, too.
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

// Covers reports whether a path bears a name that presets stand for, or lies below one
// that does, on any file system: case, dots at the end and characters that are not
// seen do not count. The path is relative to where names count from.
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

// Words returns those of the presets that cover a path: to change it, all of them must
// be lifted.
func Words(presets []string, path string) []string {
	return slices.DeleteFunc(slices.Clone(presets), func(word string) bool { return !Covers([]string{word}, path) })
}

// inGit reports whether a path in a repository's own directory is covered. That
// directory is, since what is in it would go along; so are those of submodules, whose
// names may hold slashes.
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

// Name returns what file systems may take a name for: as [Fold] says, and without dots
// and spaces at the end. The short name of the directory .git is that.
func Name(name string) string {
	name = strings.TrimRight(Fold(name), ". ")
	if name == "git~1" {
		return GitDir
	}
	return name
}
