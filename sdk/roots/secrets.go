package roots

import (
	"slices"
	"strings"
)

// covered reports whether the place usually holds secrets by its name, whether it is
// allowed or not.
func (p place) covered() bool { return p.secrets.Enter(strings.Split(p.rel, "/")...).Covered() }

// allows reports whether the place is allowed, or is below one that is.
func (r *Roots) allows(p place) bool {
	return slices.ContainsFunc(r.allowed, func(allowed string) bool {
		below, exact := beneath(allowed, p.abs(), false)
		return below || exact
	})
}

// refuses reports whether the place is refused because it usually holds secrets.
func (r *Roots) refuses(p place) bool { return p.covered() && !r.allows(p) }
