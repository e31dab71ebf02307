package config

import (
	"fmt"
	"math"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// said holds the arguments of a sandbox that can contradict each other. An argument
// that is not written is nil.
type said struct {
	isolation     *hcl.Attribute
	require       *hcl.Attribute
	runAs         *hcl.Attribute
	workspace     *hcl.Attribute
	exec          *hcl.Attribute
	network       *hcl.Attribute
	destinations  *hcl.Attribute // the first rule about destinations
	userSecrets   []word         // of inject blocks, whose values users set
	layers        []word         // of require
	writes        []sandboxPath
	execWorkspace *word
}

// isolation reads the isolation of a plugin and the required layers.
func (d *decoder) isolation(c *confinement, block sandboxArguments) {
	if name, ok := d.choice(block.Isolation, sandbox.IsolationNames()...); ok {
		if err := c.access.Isolation.UnmarshalText([]byte(name)); err == nil {
			c.said.isolation = block.Isolation
		}
	}
	if !d.absent(block.Require) {
		c.access.Require, c.said.layers = d.layers(block.Require)
		c.said.require = block.Require
	}
	if answer, ok := d.choice(block.OnMissing, "refuse", "warn"); ok {
		c.access.WarnOnMissing = answer == "warn"
	}
}

// layers reads the layers that a plugin requires.
func (d *decoder) layers(attr *hcl.Attribute) (layers []sandbox.Layer, known []word) {
	names := make([]string, 0, len(sandbox.Layers()))
	for _, l := range sandbox.Layers() {
		names = append(names, string(l))
	}
	for _, w := range d.words(attr, `a list of layers such as ["landlock", "seccomp"]`) {
		layer := sandbox.Layer(w.text)
		switch {
		case !slices.Contains(names, w.text):
			d.mistake(w.expr.Range(), "Unknown layer", "Expected %s, not %s.%s", diag.Words(names), quote(w.expr, w.text), diag.DidYouMean(w.text, names))
		case slices.Contains(layers, layer):
			d.mistake(w.expr.Range(), "Duplicate layer", "%s is already in the list.", quote(w.expr, w.text))
		default:
			layers, known = append(layers, layer), append(known, w)
		}
	}
	return layers, known
}

// contradictions reports arguments that contradict each other, if this block holds
// one of them. Other contradictions are reported in the block that this one overrides.
func (d *decoder) contradictions(c *confinement, block sandboxArguments) {
	// whether this block holds an argument, not the block that it overrides
	here := func(attr *hcl.Attribute) bool { return attr != nil && slices.Contains(block.attributes(), attr) }
	for _, w := range c.said.layers {
		layer, needed := sandbox.Layer(w.text), w.expr.Range()
		clash := func(with *hcl.Attribute, spelled, why string) {
			at := needed
			switch {
			case here(c.said.require):
			case here(with):
				at = with.Expr.Range()
			default:
				return
			}
			d.mistake(at, "Impossible layer", "The layer %q is required (%s), but %s (%s) excludes it: %s. Change one of the two.",
				w.text, diag.Place(needed), spelled, diag.Place(with.NameRange), why)
		}
		if !c.access.Isolation.CanHave(layer) {
			clash(c.said.isolation, fmt.Sprintf("isolation = %q", c.access.Isolation), "the layer needs "+diag.Words(levelsWith(layer)))
		}
		if layer == sandbox.LayerNetNS && c.access.Network == sandbox.NetworkHost {
			clash(c.said.network, `mode = "host"`, "the network is the host's")
		}
		if layer == sandbox.LayerRunAs && d.runsAsRoot(c.access.RunAs) {
			clash(c.said.runAs, "this run_as", "the plugin runs as root, like this host")
		}
	}
	if c.access.Network == sandbox.NetworkProxy && !c.access.Isolation.CanHave(sandbox.LayerNetNS) {
		at := c.said.network
		if here(c.said.isolation) {
			at = c.said.isolation
		}
		if here(at) {
			d.mistake(at.Expr.Range(), "No proxy without a network namespace",
				"mode = \"proxy\" needs the layer netns, which isolation = %q does not have. Write isolation = \"auto\", or mode = \"host\" for the whole network.", c.access.Isolation)
		}
	}
	if c.said.execWorkspace == nil || c.access.Workspace != sandbox.NoWorkspace {
		return
	}
	at := c.said.execWorkspace.expr.Range()
	switch {
	case here(c.said.exec):
	case here(c.said.workspace):
		at = c.said.workspace.Expr.Range()
	default:
		return
	}
	d.mistake(at, "Nothing to execute", "The plugin may execute files of the workspace (%s), but cannot see the workspace (%s). Change one of the two.",
		diag.Place(c.said.execWorkspace.expr.Range()), diag.Place(c.said.workspace.NameRange))
}

// levelsWith returns the names of the levels that can have a layer.
func levelsWith(layer sandbox.Layer) []string {
	var names []string
	for i, name := range sandbox.IsolationNames() {
		if sandbox.Isolation(i).CanHave(layer) {
			names = append(names, name)
		}
	}
	return names
}

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
