package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// deny returns a decision that no level can change to allow.
func (r *Rules) deny(in *Input) (Decision, bool) {
	if r.closed != nil {
		return Decision{Verdict: Deny, Rule: "patterns that cannot be used: " + r.closed.Error(), Reason: "the configuration does not fit this workspace"}, true
	}
	for _, path := range in.Paths {
		// The workspace's folders may contain everything.
		changes := in.Tier != tool.ReadOnly && !slices.Contains(in.Folders, path.Absolute)
		if words := r.protectsName(in, path.Absolute); changes && len(words) > 0 {
			return protectedName(in, path.Name, words), true
		}
		if r.hides(path.Absolute) || changes && r.protects(path.Absolute) {
			return Decision{
				Verdict: Deny, Rule: "the protection of the host's own files",
				Reason: "Path not allowed by security policy: " + tool.VisibleName(path.Name),
			}, true
		}
	}
	for _, named := range in.files() {
		// A directory above a protected file can be listed; the sandbox prevents its
		// removal.
		within := func(own string) bool { return Within(named.Absolute, own) }
		if r.hides(named.Absolute) || !named.reads && slices.ContainsFunc(r.opts.Protected, within) {
			return Decision{
				Verdict: Deny, Rule: "the protection of the host's own files",
				Reason: "Path blocked by security policy: " + tool.VisibleName(named.Name),
			}, true
		}
	}
	if name, ok := r.unreachable(in); ok {
		return Decision{
			Verdict: Deny, Rule: "the bounds of the workspace", Reason: "Path not allowed by security policy: " + tool.VisibleName(name),
			Change: "list the path under filesystem.read in the plugin's sandbox",
		}, true
	}
	if name, words := r.writesProtected(in); name != "" {
		return protectedName(in, name, words), true
	}
	if in.Tier != tool.ReadOnly && r.opts.Mode == ReadOnly {
		return Decision{
			Verdict: Deny, Rule: "mode read_only", Where: r.opts.ModePlace,
			Reason: fmt.Sprintf("Read-only mode: cannot perform '%s'", in.Tool),
			Change: `mode = "supervised" in the policy block`,
		}, true
	}
	if denied, ok := r.opts.Paths.deny(in); ok {
		return denied, true
	}
	if denied, ok := r.opts.URLs.deny(in); ok {
		return denied, true
	}
	return Decision{}, false
}

// hides reports whether a path is hidden, or below a hidden path.
func (r *Rules) hides(path string) bool {
	return slices.ContainsFunc(r.opts.Hidden, func(hidden string) bool { return Within(path, hidden) })
}

// protects reports whether a path is protected, is below a protected path, or is a folder above
// one: moving the folder would move the protected path.
func (r *Rules) protects(path string) bool {
	for _, protected := range r.opts.Protected {
		if Within(path, protected) || below(protected, path) {
			return true
		}
	}
	return false
}

// Presets returns the words of package protect for the names that a plugin may not change: all,
// unless the configuration lists fewer. The caller must not change the slice.
func (r *Rules) Presets(plugin string) []string {
	if own, ok := r.opts.Protect[plugin]; ok {
		return own
	}
	return protect.Presets()
}

// protectsName returns the words that keep the plugin from changing a path because of its name;
// none if it may. Only names below the workspace's folders count: the folders themselves may have
// any names.
func (r *Rules) protectsName(in *Input, path string) []string {
	presets := r.Presets(in.Plugin)
	for _, folder := range in.Folders {
		if below(path, folder) {
			if words := protect.Words(presets, path[len(strings.TrimSuffix(folder, "/")):]); len(words) > 0 {
				return words
			}
		}
	}
	return nil
}

// protectedName denies a change of a file with a protected name.
func protectedName(in *Input, name string, words []string) Decision {
	quoted := `"` + strings.Join(words, `" and "`) + `"`
	return Decision{
		Verdict: Deny, Rule: "protect " + quoted + " (git, editors or agents run programs that such files name)",
		Reason: "Path not allowed by security policy: " + tool.VisibleName(name),
		Change: fmt.Sprintf("leave the file as it is and ask the user, who can change it without this tool; an admin lifts the protection by leaving %s out of protect in the sandbox of plugin %q",
			quoted, in.Plugin),
	}
}

// writesProtected returns a file with a protected name to which a command redirects its output, and
// the words for it; "" if there is none.
func (r *Rules) writesProtected(in *Input) (name string, words []string) {
	for _, c := range in.Commands {
		covers := r.protectedIn(in, c.Line)
		for _, name := range c.Line.Writes {
			if words := covers(name); len(words) > 0 {
				return name, words
			}
		}
	}
	return "", nil
}

// Touched returns the words by which a call's commands may change files with protected names: words
// of commands that may do more than read. A person has to see how the files change.
func (r *Rules) Touched(in *Input, c Command) []string {
	var touched []string
	covers := r.protectedIn(in, c.Line)
	for i := range c.Line.Segments {
		s := &c.Line.Segments[i]
		if s.Risk == command.Low || s.Known && s.Risk == command.Medium { // it writes by a redirection alone
			continue
		}
		for _, name := range s.Files {
			if len(covers(name)) > 0 && !slices.Contains(touched, name) {
				touched = append(touched, name)
			}
		}
	}
	return touched
}

// protectedIn returns a function that returns the words that protect a word of a line from the
// plugin. If the line changes to more directories than can be followed, the word may be in any of
// them.
func (r *Rules) protectedIn(in *Input, line *command.Line) func(name string) []string {
	bases, all := in.Places(line)
	presets := r.Presets(in.Plugin)
	var anywhere []string // the words for a directory that the line changes to
	if !all {
		for _, dir := range append(slices.Clone(line.Directories), bases...) {
			for part := range strings.SplitSeq(strings.TrimPrefix(dir, in.folder(dir)), "/") {
				anywhere = append(anywhere, protect.Words(presets, part)...)
			}
		}
	}
	return func(name string) []string {
		if !all && !filepath.IsAbs(name) {
			if words := append(protect.Words(presets, name), anywhere...); len(words) > 0 {
				return slices.Compact(slices.Sorted(slices.Values(words)))
			}
		}
		for _, base := range bases {
			if words := r.protectsName(in, from(base, name)); len(words) > 0 {
				return words
			}
		}
		return nil
	}
}

// from returns an absolute path for a path that may be relative to a directory.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Within reports whether a clean path is a folder or below it. It compares components as text and
// reads no files.
func Within(path, folder string) bool { return path == folder || below(path, folder) }

func below(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
