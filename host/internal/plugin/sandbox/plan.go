package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// plan is how one program is to be confined: what the profile asks for, less what
// cannot be had here.
type plan struct {
	profile *Profile
	on      map[Layer]bool
	minimal bool         // the root holds only what is listed
	user    *launch.User // nil: the host's own
	// userOfItsOwn says that no other program has the user.
	userOfItsOwn bool
	groups       *groups // nil until a group was made
	missing      []Gap
}

// newPlan plans all that the profile asks for, but for what is known to be missing.
func newPlan(p *Profile, known map[Layer]Gap) *plan {
	level := p.Confinement.Isolation
	if level == Auto {
		level = Strict
	}
	pl := &plan{profile: p, on: map[Layer]bool{}, minimal: level == Strict}
	for _, layer := range layersOf(level) {
		pl.on[layer] = true
	}
	if level >= Isolated {
		pl.on[LayerUserNS] = true
		pl.on[LayerNetNS] = p.Confinement.Network == NetworkNone
	}
	pl.on[LayerCgroup] = true
	if os.Geteuid() == 0 {
		pl.on[LayerCaps] = level >= Basic
		if level >= Basic || p.Confinement.RunAs.Mode == RunAsUser {
			pl.chooseUser()
		}
	}
	for _, layer := range Layers() {
		if gap, ok := known[layer]; ok {
			pl.drop(gap)
		}
	}
	return pl
}

// drop goes on without a layer. It returns false if the layer was not planned, so
// that nothing is gained.
func (p *plan) drop(gap Gap) bool {
	if !p.on[gap.Layer] {
		return false
	}
	p.missing = append(p.missing, gap)
	if gap.Layer == LayerMounts && p.minimal {
		p.minimal = false // what there is can still be made read-only
		return true
	}
	p.on[gap.Layer] = false
	needs := map[Layer][]Layer{
		LayerMounts: {LayerProc}, // it would be mounted over that of everybody
		LayerPIDNS:  {LayerProc}, // it would show the same
	}
	if len(p.profile.Confinement.Exec) > 0 {
		needs[LayerProc] = []Layer{LayerPIDNS} // what it executes needs a /proc, and can have the host's only without
	}
	if os.Geteuid() != 0 { // only in a user namespace of its own may it make the others
		needs[LayerUserNS] = []Layer{LayerPIDNS, LayerNetNS, LayerIPCNS, LayerMounts, LayerProc}
	}
	for _, layer := range needs[gap.Layer] {
		if p.on[layer] {
			p.on[layer] = false
			p.missing = append(p.missing, Gap{Layer: layer, Reason: fmt.Sprintf("it takes the layer %s", gap.Layer), Remedy: gap.Remedy})
		}
	}
	if gap.Layer == LayerRunAs {
		p.user = nil
	}
	return true
}

// namespaces are the layers that the kernel makes with the process, those first
// that are most often not to be had: the kernel does not tell which it refuses.
func namespaces() []Layer {
	return []Layer{LayerUserNS, LayerNetNS, LayerIPCNS, LayerPIDNS, LayerMounts}
}

// refusals are the errors by which clone(2) says that a namespace is not to be had
// here: not allowed, not known, or none left of those that users may have.
func refusals() []syscall.Errno {
	return []syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.EINVAL, syscall.ENOSYS, syscall.ENOSPC, syscall.EUSERS}
}

// passing reports whether an error says that the system lacks now what it may have in
// a moment. To do without a layer for that, now or from then on, would let whoever uses
// the system up take layers from others.
func passing(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EINTR}, func(errno syscall.Errno) bool {
		return errors.Is(err, errno)
	})
}

// gap returns which layer an attempt has failed for, or false if it failed for
// another reason.
func (p *plan) gap(err error) (Gap, bool) {
	if passing(err) {
		return Gap{}, false
	}
	if f, ok := errors.AsType[*launch.StepError](err); ok && f.Layer != "" {
		return newGap(Layer(f.Layer), err), true
	}
	if _, ok := errors.AsType[*forkError](err); !ok {
		return Gap{}, false
	}
	for _, ofGroups := range []error{unix.EACCES, unix.EBUSY, unix.EOPNOTSUPP, unix.ENODEV, unix.ENOENT, unix.ENOSYS} {
		if p.on[LayerCgroup] && errors.Is(err, ofGroups) {
			return newGap(LayerCgroup, err), true
		}
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok || !slices.Contains(refusals(), errno) {
		return Gap{}, false
	}
	err = fmt.Errorf("the kernel refuses it: %w", errno) // without what was forked
	for _, layer := range namespaces() {
		if p.on[layer] {
			if layer == LayerMounts {
				p.minimal = false
			}
			return newGap(layer, err), true
		}
	}
	return Gap{}, false
}

// lasting reports whether a gap is one of the machine rather than of a profile.
func (g Gap) lasting() bool {
	ofProfiles := []Layer{LayerRlimits, LayerMounts, LayerRunAs, LayerCaps}
	return !slices.Contains(ofProfiles, g.Layer)
}

// check reports whether a layer is missing that the profile requires.
func (p *plan) check() error {
	for _, gap := range p.unmet() {
		if gap.Layer == LayerLandlock && p.open() {
			gap.Reason += "; without it and without mounts the program could read this host's keys"
		}
		// Who names a user never means root.
		if !p.profile.Confinement.WarnOnMissing || gap.Layer == LayerRunAs && p.profile.Confinement.RunAs.Mode == RunAsUser {
			return &MissingError{gap}
		}
	}
	return nil
}

// open reports whether nothing keeps a program from what is the host's, though the
// system has what could.
func (p *plan) open() bool {
	c := &p.profile.Confinement
	_, never := missingHere()[LayerLandlock]
	return c.Isolation != Off && !p.on[LayerLandlock] && !p.on[LayerMounts] && !never
}

// unmet returns what the profile requires and does not get.
func (p *plan) unmet() []Gap {
	c := &p.profile.Confinement
	required := slices.Clone(c.Require)
	switch c.Isolation {
	case Auto:
	case Off: // what always holds, where it is known
		required = append(required, here(layersOf(Off))...)
	case Basic, Isolated, Strict:
		required = append(required, layersOf(c.Isolation)...)
	}
	if c.RunAs.Mode == RunAsUser {
		required = append(required, LayerRunAs)
	}
	if p.open() {
		required = append(required, LayerLandlock)
	}
	var unmet []Gap
	for _, gap := range p.missing {
		strict := gap.Layer == LayerMounts && c.Isolation == Strict
		if slices.Contains(required, gap.Layer) && (!p.on[gap.Layer] || strict) {
			unmet = append(unmet, gap)
		}
	}
	for i, layer := range required {
		told := slices.Contains(required[:i], layer) || slices.ContainsFunc(unmet, func(g Gap) bool { return g.Layer == layer })
		if !p.on[layer] && !p.given(layer) && !told {
			unmet = append(unmet, Gap{Layer: layer, Reason: "isolation = \"" + c.Isolation.String() + "\" does not have it"})
		}
	}
	return unmet
}

// given reports whether a layer holds without having been planned: of what root
// gives up, an ordinary user has nothing.
func (p *plan) given(layer Layer) bool {
	return os.Geteuid() != 0 && (layer == LayerRunAs || layer == LayerCaps)
}

// order returns what the launcher is told.
func (p *plan) order() *launch.Order {
	f := p.files()
	dir := p.profile.Dir
	if dir == "" {
		dir = "/"
	}
	o := &launch.Order{
		Host:   os.Getpid(),
		Path:   launch.Bytes(p.profile.Path),
		Args:   bytesOf(p.profile.Args),
		Env:    bytesOf(p.profile.Env),
		Dir:    launch.Bytes(dir),
		Limits: p.limits().resources(),
		Script: isScript(p.profile.Binary),
		NoCaps: p.on[LayerCaps],
		User:   p.user,
	}
	o.Loopback = p.on[LayerNetNS]
	if p.user != nil {
		o.Reach = bytesOf(append([]string{dir}, p.profile.Own...))
		if p.profile.Confinement.Workspace == WriteWorkspace {
			o.Writable = bytesOf(nonEmpty(p.profile.Workspace))
		}
	}
	if p.on[LayerMounts] {
		o.Mounts = f.mounts()
	}
	if p.on[LayerLandlock] {
		o.Landlock = f.landlock()
	}
	if p.on[LayerSeccomp] {
		o.Seccomp = p.filter()
	}
	return o
}

// limits are those of the profile and what the plan makes possible: a bound of
// processes counts the namespace or the user, which must not be shared.
func (p *plan) limits() Limits {
	if p.on[LayerUserNS] && os.Geteuid() != 0 || p.user != nil {
		return p.groupLimits()
	}
	return p.profile.Limits
}

// groupLimits are those for a control group, which nobody shares.
func (p *plan) groupLimits() Limits {
	l := p.profile.Limits
	if l.Processes == 0 && !p.profile.Confinement.UnlimitedProcesses {
		l.Processes = DefaultProcesses
	}
	return l
}

func (p *plan) filter() *launch.Filter {
	executes := len(p.profile.Confinement.Exec) > 0
	// Memory that processes share is no process's by its limits. Others may need it,
	// as they may change modes by names.
	f := &launch.Filter{
		Sockets: launch.SocketsNetwork, IPC: executes && p.on[LayerIPCNS], Memfd: executes, SharedMemory: executes,
		Metadata: executes || p.on[LayerMounts],
	}
	// Without a network of its own, none is only possible without sockets. A
	// program that executes no other needs none.
	if p.profile.Confinement.Network == NetworkNone && (!executes || !p.on[LayerNetNS]) {
		f.Sockets = launch.SocketsListen
	}
	return f
}
