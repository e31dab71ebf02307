package policy

import (
	"strings"

	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/sensitive"
)

// In returns the options for a workspace, of which folder is the absolute path: patterns that are
// relative mean paths in it, as written and with symbolic links resolved.
func (o Options) In(folder string, resolve func(path string) string) Options {
	var rules []PathRule
	for _, rule := range o.Paths.Forbidden {
		for _, rule.Pattern = range forbidden.Spellings(folder, rule.Pattern, resolve) {
			rules = append(rules, rule)
		}
	}
	o.Paths.Forbidden = rules
	if o.Paths.Sensitive.Patterns == nil {
		return o // the built-in list
	}
	patterns := []string{}
	for _, pattern := range o.Paths.Sensitive.Patterns {
		patterns = append(patterns, inWorkspace(pattern, folder))
		if real := resolve(folder); real != folder && patterns[len(patterns)-1] != pattern {
			patterns = append(patterns, inWorkspace(pattern, real))
		}
	}
	o.Paths.Sensitive.Patterns = patterns
	return o
}

// InWorkspace begins the patterns of [Sensitive] that mean paths in the workspace. Others that are
// not absolute mean names in any directory.
const InWorkspace = "./"

// inWorkspace returns a pattern of sensitive files for a workspace.
func inWorkspace(pattern, folder string) string {
	rest, takeBack := strings.CutPrefix(pattern, "!")
	rest, relative := strings.CutPrefix(rest, InWorkspace)
	switch {
	case !relative:
		return pattern
	case takeBack:
		return "!" + forbidden.In(folder, rest)
	}
	return forbidden.In(folder, rest)
}

// CheckSensitive returns an error if a pattern of [Sensitive] cannot be used.
func CheckSensitive(pattern string) error {
	_, err := sensitive.Parse([]string{inWorkspace(pattern, "/workspace")})
	return err
}

// In returns the policy for a workspace; see [Options.In]. If its patterns cannot be used there, it
// denies every call.
func (r *Rules) In(folder string, resolve func(path string) string) *Rules {
	there, err := New(r.opts.In(folder, resolve))
	if err != nil {
		return &Rules{opts: r.opts, closed: err}
	}
	return there
}
