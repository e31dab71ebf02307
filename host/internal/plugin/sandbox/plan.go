package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// plan is the confinement of one program: what its profile asks for, without what this
// machine lacks.
type plan struct {
	profile *Profile
	on      map[Layer]bool
	minimal bool         // the root holds only the listed paths
	user    *launch.User // nil: the host's own
	// userOfItsOwn is set if no other program has the user.
	userOfItsOwn bool
	groups       *groups // nil until a group was made
	missing      []Gap
}

// newPlan plans everything that the profile asks for, except layers that are known to be
// missing.
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
		pl.on[LayerNetNS] = p.Confinement.Network != NetworkHost
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

// drop removes a layer from the plan. It returns false if the layer was not planned.
func (p *plan) drop(gap Gap) bool {
	if !p.on[gap.Layer] {
		return false
	}
	p.missing = append(p.missing, gap)
	if gap.Layer == LayerMounts && p.minimal {
		p.minimal = false // the present file system can still be made read-only
		return true
	}
	p.on[gap.Layer] = false
	needs := map[Layer][]Layer{
		LayerMounts: {LayerProc}, // it would replace the /proc of all processes
		LayerPIDNS:  {LayerProc}, // it would show the same processes
	}
	if len(p.profile.Confinement.Exec) > 0 {
		needs[LayerProc] = []Layer{LayerPIDNS} // its programs need a /proc, and can have the host's only without a namespace
	}
	if os.Geteuid() != 0 { // an ordinary user may make the others only in a user namespace
		needs[LayerUserNS] = []Layer{LayerPIDNS, LayerNetNS, LayerIPCNS, LayerMounts, LayerProc}
	}
	for _, layer := range needs[gap.Layer] {
		if p.on[layer] {
			p.on[layer] = false
			p.missing = append(p.missing, Gap{Layer: layer, Reason: fmt.Sprintf("it needs the layer %s", gap.Layer), Remedy: gap.Remedy})
		}
	}
	if gap.Layer == LayerRunAs {
		p.user = nil
	}
	return true
}

// namespaces returns the layers that the kernel makes with the process, those first that
// are refused most often: the kernel does not tell which one it refuses.
func namespaces() []Layer {
	return []Layer{LayerUserNS, LayerNetNS, LayerIPCNS, LayerPIDNS, LayerMounts}
}

// refusals returns the errors by which clone(2) refuses a namespace: it is not allowed, not
// known, or above a limit.
func refusals() []syscall.Errno {
	return []syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.EINVAL, syscall.ENOSYS, syscall.ENOSPC, syscall.EUSERS}
}

// passing reports whether an error means a shortage that may pass. Such an error must not
// cost a layer: otherwise a program that exhausts the system could disarm others.
func passing(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EINTR}, func(errno syscall.Errno) bool {
		return errors.Is(err, errno)
	})
}

// gap returns the layer that made an attempt fail, or false if it failed for another reason.
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
	err = fmt.Errorf("the kernel refuses it: %w", errno) // without the path of the launcher
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

// lasting reports whether a gap is a property of the machine and not of a profile.
func (g Gap) lasting() bool {
	ofProfiles := []Layer{LayerRlimits, LayerMounts, LayerRunAs, LayerCaps}
	return !slices.Contains(ofProfiles, g.Layer)
}

// check returns an error if a layer is missing that the profile requires.
func (p *plan) check() error {
	for _, gap := range p.unmet() {
		if gap.Layer == LayerLandlock && p.open() {
			gap.Reason += "; without it and without mounts the program could read this host's keys"
		}
		c := &p.profile.Confinement
		proof := slices.Contains(c.proof(), gap.Layer)
		// A named user is never replaced by root.
		if !c.WarnOnMissing || proof || gap.Layer == LayerRunAs && c.RunAs.Mode == RunAsUser {
			return &MissingError{Gap: gap, Proof: proof}
		}
	}
	return nil
}

// open reports whether nothing keeps a program from the host's own files, although the
// system could.
func (p *plan) open() bool {
	c := &p.profile.Confinement
	_, never := missingHere()[LayerLandlock]
	return c.Isolation != Off && !p.on[LayerLandlock] && !p.on[LayerMounts] && !never
}

// unmet returns the required layers that are missing.
func (p *plan) unmet() []Gap {
	c := &p.profile.Confinement
	required := slices.Clone(c.Require)
	switch c.Isolation {
	case Auto:
	case Off: // what every program has, where the system knows it
		required = append(required, here(layersOf(Off))...)
	case Basic, Isolated, Strict:
		required = append(required, layersOf(c.Isolation)...)
	}
	required = append(required, c.proof()...)
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

// given reports whether a layer is in force without a plan: an ordinary user has no root
// rights to give up.
func (p *plan) given(layer Layer) bool {
	return os.Geteuid() != 0 && (layer == LayerRunAs || layer == LayerCaps)
}

// order returns the launcher's order.
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
	if p.proxied() {
		o.Proxy = p.profile.ProxyPort
		o.Env = bytesOf(withVariables(p.profile.Env, p.profile.ProxyEnv))
	}
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

// proxied reports whether the host listens in the program's network namespace.
func (p *plan) proxied() bool {
	return p.profile.Confinement.Network == NetworkProxy && p.on[LayerNetNS]
}

// withVariables returns an environment with variables in place of others of their names.
func withVariables(env, variables []string) []string {
	sets := func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(variables, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	}
	return append(slices.DeleteFunc(slices.Clone(env), sets), variables...)
}

// limits returns the limits of each process. A limit of processes counts those of the
// namespace or of the user, which must not be shared with others.
func (p *plan) limits() Limits {
	if p.on[LayerUserNS] && os.Geteuid() != 0 || p.user != nil {
		return p.groupLimits()
	}
	return p.profile.Limits
}

// groupLimits returns the limits of a control group, which is never shared.
func (p *plan) groupLimits() Limits {
	l := p.profile.Limits
	if l.Processes == 0 && !p.profile.Confinement.UnlimitedProcesses {
		l.Processes = DefaultProcesses
	}
	return l
}

func (p *plan) filter() *launch.Filter {
	executes := len(p.profile.Confinement.Exec) > 0
	// No resource limit counts memory that processes share. Programs of others may need
	// it, and may need to change modes by name.
	f := &launch.Filter{
		Sockets: launch.SocketsNetwork, IPC: executes && p.on[LayerIPCNS], Memfd: executes, SharedMemory: executes,
		Metadata: executes || p.on[LayerMounts],
	}
	// Without a network namespace, only a ban on sockets keeps a program off the network. A
	// program that executes no others needs no sockets. A read-only mount does not keep a reader
	// from the sockets of other programs in it.
	if none := p.profile.Confinement.Network == NetworkNone; none && (!executes || p.profile.Confinement.Reader.On) || p.profile.Confinement.Network != NetworkHost && !p.on[LayerNetNS] {
		f.Sockets = launch.SocketsListen
	}
	return f
}
