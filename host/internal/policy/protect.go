package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// deny returns the decision about a call that no level can allow.
func (r *Rules) deny(in *Input) (Decision, bool) {
	for _, path := range in.Paths {
		// The folders that callers work in may be around everything.
		if r.hides(path.Absolute) || in.Tier != tool.ReadOnly && !slices.Contains(in.Folders, path.Absolute) && r.protects(path.Absolute) {
			return Decision{
				Verdict: Deny, Rule: "the protection of the host's own files",
				Reason: "Path not allowed by security policy: " + tool.VisibleName(path.Name),
			}, true
		}
	}
	for _, named := range in.files() {
		// A directory around a protected file can be listed; what would remove that is
		// the business of the sandbox.
		within := func(own string) bool { return Within(named.Absolute, own) }
		if r.hides(named.Absolute) || !named.reads && slices.ContainsFunc(r.opts.Protected, within) {
			return Decision{
				Verdict: Deny, Rule: "the protection of the host's own files",
				Reason: "Path blocked by security policy: " + tool.VisibleName(named.Name),
			}, true
		}
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

// hides reports whether a path is hidden, or lies below one that is.
func (r *Rules) hides(path string) bool {
	return slices.ContainsFunc(r.opts.Hidden, func(hidden string) bool { return Within(path, hidden) })
}

// protects reports whether a path is protected, lies below one that is, or is
// a folder around one: moving it away would take the protected one along.
func (r *Rules) protects(path string) bool {
	for _, protected := range r.opts.Protected {
		if Within(path, protected) || below(protected, path) {
			return true
		}
	}
	return false
}

// Within reports whether a clean path is a folder or lies below it, by their components
// as they are spelled: no file is looked at.
func Within(path, folder string) bool { return path == folder || below(path, folder) }

func below(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
