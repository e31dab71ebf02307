package roots

import (
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// covered reports whether the place usually holds secrets by its name, allowed or not.
func (p place) covered() bool { return p.secrets.Enter(strings.Split(p.rel, "/")...).Covered() }

// allows reports whether the place is allowed, or is below one that is.
func (r *Roots) allows(p place) bool {
	return slices.ContainsFunc(r.allowed, func(allowed string) bool {
		below, exact := beneath(allowed, p.abs(), false)
		return below || exact
	})
}

// refuses returns the error for a place that is forbidden or usually holds secrets, or
// nil. The error calls it name.
func (r *Roots) refuses(p place, name string) *tool.Error {
	switch {
	case r.forbids(p):
		return r.forbiddenPath(name)
	case p.covered() && !r.allows(p):
		return r.secret(name)
	}
	return nil
}

// Forbids reports whether the absolute path is forbidden. It need not be in a folder.
func (r *Roots) Forbids(abs string) bool {
	at, ok := r.below(abs)
	return r.forbidden.Covers(abs) || ok && r.forbids(at)
}

// forbids reports whether the place is forbidden, by its real path or by that of its
// folder as it was given.
func (r *Roots) forbids(p place) bool {
	if len(r.forbidden) == 0 {
		return false
	}
	return r.forbidden.Covers(p.abs()) || p.path != p.real && r.forbidden.Covers(path.Join(p.path, p.rel))
}
