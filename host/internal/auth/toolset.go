package auth

import (
	"path"
	"slices"
)

// Toolset is a named selection of tools. It only limits a caller, and gives nothing.
type Toolset struct {
	Name string
	// Tools are patterns of tools' names, as [path.Match] reads them.
	Tools []string
}

// has reports whether a tool is in the set. A pattern that is invalid matches nothing.
func (s Toolset) has(tool string) bool {
	return slices.ContainsFunc(s.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	})
}

// MayUse reports whether a tool is in all toolsets of the caller. To the caller, any
// other tool does not exist.
func (c Caller) MayUse(tool string) bool {
	return !slices.ContainsFunc(c.Toolsets, func(s Toolset) bool { return !s.has(tool) })
}

// Within returns the caller limited to a further toolset.
func (c Caller) Within(s Toolset) Caller {
	c.Toolsets = append(slices.Clip(c.Toolsets), s)
	return c
}
