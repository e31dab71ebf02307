package auth

import (
	"path"
	"slices"
)

// Toolset is a named selection of tools. It limits a caller and grants nothing.
type Toolset struct {
	Name string
	// Tools are patterns of tools' names, as [path.Match] reads them.
	Tools []string
}

// has reports whether a tool is in the set. An invalid pattern matches nothing.
func (s Toolset) has(tool string) bool {
	return slices.ContainsFunc(s.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	})
}

// MayUse reports whether a tool is in all of the caller's toolsets. For the caller, no other
// tool exists.
func (c Caller) MayUse(tool string) bool {
	return !slices.ContainsFunc(c.Toolsets, func(s Toolset) bool { return !s.has(tool) })
}

// Within returns the caller with an additional toolset.
func (c Caller) Within(s Toolset) Caller {
	c.Toolsets = append(slices.Clip(c.Toolsets), s)
	return c
}
