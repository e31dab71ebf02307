package roots

import (
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// covered reports whether the name of the place usually belongs to a file with secrets,
// allowed or not.
func (p place) covered() bool { return p.secrets.Enter(strings.Split(p.rel, "/")...).Covered() }

// allows reports whether the place is allowed or below an allowed one.
func (r *Roots) allows(p place) bool {
	return slices.ContainsFunc(r.allowed, func(allowed string) bool {
		below, exact := beneath(allowed, p.abs(), false)
		return below || exact
	})
}

// refuses returns the error for a place that is forbidden or usually holds secrets, or nil.
// The error uses name.
func (r *Roots) refuses(p place, name string) *tool.Error {
	switch {
	case r.forbids(p):
		return r.forbiddenPath(name)
	case p.covered() && !r.allows(p):
		return r.secret(name)
	}
	return nil
}

// Forbids reports whether the absolute path is forbidden, in a folder or not.
func (r *Roots) Forbids(abs string) bool {
	at, ok := r.below(abs)
	return r.forbidden.Covers(abs) || ok && r.forbids(at)
}

// forbids reports whether the place is forbidden, either by its real path or by the path of
// its folder as given.
func (r *Roots) forbids(p place) bool {
	if len(r.forbidden) == 0 {
		return false
	}
	return r.forbidden.Covers(p.abs()) || p.path != p.real && r.forbidden.Covers(path.Join(p.path, p.rel))
}
