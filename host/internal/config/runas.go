package config

import (
	"math"
	"os/user"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// account is a user and a group by their numbers.
type account struct{ uid, gid int }

const (
	runAsExpected = `"auto", "host", the name of a user, or numbers such as "1000" or "1000:1000"`
	unknownUser   = "Unknown user"
)

// runAs reads the user that a plugin runs as.
func (d *decoder) runAs(c *confinement, attr *hcl.Attribute) {
	s, ok := d.text(attr, runAsExpected)
	if !ok {
		return
	}
	as := sandbox.RunAs{}
	switch s {
	case "auto":
	case "host":
		as.Mode = sandbox.RunAsHost
	default:
		who, ok := d.account(attr, s)
		if !ok {
			return
		}
		other := who.uid != d.host.uid || strings.Contains(s, ":") && who != d.host
		if other && d.host.uid != 0 {
			d.mistake(attr.Expr.Range(), "Another user than the host's",
				"Only a host that runs as root can run plugins as another user. This one runs as %d:%d. "+
					`Expected "auto" or "host"; or start the host as root.`, d.host.uid, d.host.gid)
			return
		}
		as = sandbox.RunAs{Mode: sandbox.RunAsUser, UID: who.uid, GID: who.gid}
	}
	c.access.RunAs, c.said.runAs = as, attr
}

// runsAsRoot reports whether a plugin runs as root, like its host.
func (d *decoder) runsAsRoot(as sandbox.RunAs) bool {
	return d.host.uid == 0 && (as.Mode == sandbox.RunAsHost || as.Mode == sandbox.RunAsUser && as.UID == 0)
}

// account returns the numbers of a user and its group. It looks up a user by name or
// number, or takes the numbers of both.
func (d *decoder) account(attr *hcl.Attribute, s string) (account, bool) {
	name, group, both := strings.Cut(s, ":")
	uid, isUID := accountNumber(name)
	gid, isGID := accountNumber(group)
	at := attr.Expr.Range()
	switch {
	case both && isUID && isGID:
		return account{uid, gid}, true
	case both:
		d.mistake(at, unknownUser, "Expected %s for run_as, not %s. Both sides of a colon must be numbers.", runAsExpected, quote(attr.Expr, s))
		return account{}, false
	case isUID:
		if found, err := user.LookupId(name); err == nil {
			return d.found(attr, found)
		}
		d.mistake(at, unknownUser, `This machine has no user with the number %d, so its group is unknown. Name the group too: "%d:%d".`, uid, uid, uid)
		return account{}, false
	}
	found, err := user.Lookup(name)
	if name == "" || err != nil {
		d.mistake(at, unknownUser, "This machine has no user %s. Expected %s for run_as.%s",
			quote(attr.Expr, s), runAsExpected, diag.DidYouMean(s, []string{"auto", "host"}))
		return account{}, false
	}
	return d.found(attr, found)
}

func (d *decoder) found(attr *hcl.Attribute, u *user.User) (account, bool) {
	uid, isUID := accountNumber(u.Uid)
	gid, isGID := accountNumber(u.Gid)
	if !isUID || !isGID {
		d.mistake(attr.Expr.Range(), unknownUser, "The user has no numbers on this machine. Expected %s for run_as.", runAsExpected)
		return account{}, false
	}
	return account{uid, gid}, true
}

// accountNumber reads the number of a user or a group. It refuses the largest one,
// which means "no change" to the kernel.
func accountNumber(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return 0, false
	}
	return int(n), true
}
