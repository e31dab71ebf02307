package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// Report describes the confinement in force for one process.
type Report struct {
	// Layers are in force, e.g. "rlimits", "landlock v7", "mounts:minimal". The last one is "reader"
	// for [Confinement.AsReader].
	Layers []string `json:"layers"`
	// Missing are the gaps in the planned confinement.
	Missing []Gap `json:"missing,omitempty"`
}

// Gap is a layer, or a part of one, that is missing.
type Gap struct {
	Layer Layer `json:"layer"`
	// Reason explains why it is missing.
	Reason string `json:"reason"`
	// Remedy says what to change on the machine; "" if no remedy is known.
	Remedy string `json:"remedy,omitempty"`
	// Required is set if the profile requires the layer and the program was started
	// without it.
	Required bool `json:"required,omitempty"`
	// Unsearched is set if the search for protected or forbidden names was incomplete.
	// Reason names the directories that were not searched.
	Unsearched bool `json:"unsearched,omitempty"`
	// Unhidden is set if programs that it executes may see forbidden files, because the
	// search for them was incomplete.
	Unhidden bool `json:"unhidden,omitempty"`
}

// String returns the layer and the reason.
func (g Gap) String() string { return fmt.Sprintf("%s (%s)", g.Layer, g.Reason) }

// String returns the report as one line, e.g. "rlimits, no_new_privs, pdeathsig;
// missing: landlock (the kernel has none)".
func (r Report) String() string {
	line := strings.Join(r.Layers, ", ")
	if line == "" {
		line = "nothing enforced"
	}
	for i, gap := range r.Missing {
		separator := ", "
		if i == 0 {
			separator = "; missing: "
		}
		text := gap.String()
		if i+1 < len(r.Missing) && r.Missing[i+1].Reason == gap.Reason {
			text = string(gap.Layer) // the last of them has the reason
		}
		line += separator + text
	}
	return line
}

// Unhidden reports whether programs that the process executes may see forbidden files,
// because the search for them was incomplete.
func (r Report) Unhidden() bool {
	return slices.ContainsFunc(r.Missing, func(g Gap) bool { return g.Unhidden })
}

// MissingError means that a program was not started because a required layer is missing.
type MissingError struct {
	Gap Gap
	// Proof is set if the layer is one of [ReaderLayers], which the program of
	// [Confinement.AsReader] never starts without.
	Proof bool
}

// Error implements error.
func (e *MissingError) Error() string {
	if e.Proof {
		text := fmt.Sprintf("split_tiers requires %s, which this machine does not have: %s", e.Gap.Layer, e.Gap.Reason)
		if e.Gap.Remedy != "" {
			text += "; " + e.Gap.Remedy
		}
		return text + ", or remove split_tiers"
	}
	text := fmt.Sprintf("its sandbox requires %s, which this machine does not have: %s", e.Gap.Layer, e.Gap.Reason)
	if e.Gap.Remedy != "" {
		text += "; " + e.Gap.Remedy
	}
	return text + `, or set on_missing = "warn"`
}

// newGap returns the gap that an error means for a layer.
func newGap(layer Layer, err error) Gap {
	return Gap{Layer: layer, Reason: err.Error(), Remedy: remedy(layer, err)}
}

// remedy tells an operator how to get a layer.
func remedy(layer Layer, err error) string {
	errno, _ := errors.AsType[syscall.Errno](err)
	switch layer { //nolint:exhaustive // the others have no remedy
	case LayerUserNS:
		if errors.Is(errno, syscall.ENOSPC) {
			return "raise the sysctl user.max_user_namespaces"
		}
		return "allow user namespaces to ordinary users: sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0"
	case LayerNetNS, LayerPIDNS, LayerIPCNS, LayerMounts:
		if errors.Is(errno, syscall.EPERM) || errors.Is(errno, syscall.EACCES) {
			return "allow this program to use namespaces (AppArmor, SELinux, a container's seccomp profile)"
		}
		return "use a kernel with namespaces"
	case LayerProc:
		return "run the host where /proc is not masked: outside a container, or with its /proc unmasked"
	case LayerLandlock:
		return "use Linux 5.13 or later, with landlock in the kernel parameter lsm="
	case LayerSeccomp:
		return "use a kernel with CONFIG_SECCOMP_FILTER, on amd64 or arm64"
	case LayerCgroup:
		return "run the host as a service with Delegate=yes, on a system whose control groups are of version 2"
	case LayerRunAs:
		return "use isolation with mounts (isolated, strict), or name the user with run_as"
	}
	return ""
}

// gaps returns the missing layers, and marks those that the profile requires.
func (p *plan) gaps() []Gap {
	gaps := slices.Clone(p.missing)
	for _, unmet := range p.unmet() {
		required := unmet
		required.Required = true
		if i := slices.Index(gaps, unmet); i >= 0 {
			gaps[i] = required
		} else {
			gaps = append(gaps, required)
		}
	}
	return gaps
}

// report describes the confinement after the launcher has carried out the order.
func (p *plan) report(done *launch.Details) Report {
	texts := map[Layer]string{LayerMounts: "mounts:ro", LayerProc: "proc:fresh", LayerCaps: "caps=0"}
	if p.minimal {
		texts[LayerMounts] = "mounts:minimal"
	}
	if p.proxied() {
		texts[LayerNetNS] = "netns:proxy"
	}
	if p.on[LayerLandlock] {
		texts[LayerLandlock] = fmt.Sprintf("landlock v%d", done.Landlock)
	}
	if p.on[LayerSeccomp] {
		texts[LayerSeccomp] = "seccomp:" + string(p.filter().Sockets)
	}
	if p.user != nil {
		texts[LayerRunAs] = fmt.Sprintf("uid=%d", p.user.UID)
	}
	if p.on[LayerCgroup] && p.groups != nil {
		texts[LayerCgroup] = "cgroup:" + strings.Join(slices.Concat(p.groups.controllers, []string{"kill"}), ",")
	}
	on := maps.Clone(p.on)
	on[LayerRunAs] = p.user != nil
	r := Report{Missing: p.gaps()}
	for _, layer := range Layers() {
		if !on[layer] {
			continue
		}
		text := string(layer)
		if t, ok := texts[layer]; ok {
			text = t
		}
		r.Layers = append(r.Layers, text)
	}
	r.Layers = append(r.Layers, always()...)
	if p.profile.Confinement.Reader.On {
		r.Layers = append(r.Layers, "reader")
	}
	r.Missing = append(r.Missing, p.partial(done)...)
	return r
}

// partial returns the parts of layers in force that are missing here.
func (p *plan) partial(done *launch.Details) []Gap {
	var gaps []Gap
	miss := func(layer Layer, remedy, reason string, args ...any) {
		gaps = append(gaps, Gap{Layer: layer, Reason: fmt.Sprintf(reason, args...), Remedy: remedy})
	}
	if abi := done.Landlock; p.on[LayerLandlock] && abi < 3 && !p.on[LayerMounts] {
		miss(LayerLandlock, "use Linux 6.2 or later", "version %d does not prevent truncating files", abi)
	}
	if abi := done.Landlock; p.on[LayerLandlock] && abi < 6 && !p.on[LayerPIDNS] {
		miss(LayerLandlock, "use Linux 6.12 or later", "version %d does not prevent signals to other processes of its user", abi)
	}
	if p.on[LayerCgroup] && p.groups != nil && p.groups.missing.Layer != "" {
		gap := p.groups.missing
		gap.Required = slices.Contains(p.profile.Confinement.Require, LayerCgroup)
		gaps = append(gaps, gap)
	}
	if p.profile.Limits.CPUs > 0 && !p.controls("cpu") {
		miss(LayerCgroup, remedy(LayerCgroup, nil), "the limit cpus is not set")
	}
	if done.NoLoopback != "" {
		miss(LayerNetNS, "", "its loopback address: %s", done.NoLoopback)
	}
	if p.profile.Confinement.Network == NetworkProxy && !p.proxied() {
		miss(LayerNetNS, `or write mode = "host" in the network block`, "without it there is no proxy, and the program has no network")
	}
	if p.checksOnly() {
		miss(LayerMounts, "", "only checks protect files in the workspace, not the kernel")
	}
	if p.byChecksOnly() {
		miss(LayerMounts, "", "only checks hide what paths.forbidden covers, not the kernel")
	}
	if len(p.profile.unsearched) > 0 && p.on[LayerMounts] {
		miss(LayerMounts, "name what matters in protect, or make the workspace smaller",
			"the workspace is too large to search for all protected names: only checks protect files in %s", p.relative(p.profile.unsearched))
		gaps[len(gaps)-1].Unsearched = true
	}
	if len(p.profile.beyond) > 0 && p.on[LayerMounts] {
		miss(LayerMounts, "write paths.forbidden without wildcards, or make the workspace smaller",
			"there are too many files to search for all that paths.forbidden covers: only checks hide files in %s", p.relative(p.profile.beyond))
		gap := &gaps[len(gaps)-1]
		gap.Unsearched, gap.Unhidden = true, len(p.profile.Confinement.Exec) > 0
		if gap.Unhidden {
			gap.Reason += ", and each call needs confirmation"
		}
	}
	if len(p.profile.unnoted) > 0 && p.on[LayerMounts] {
		miss(LayerMounts, "remove hard links of forbidden files from directories that it may read",
			"there are too many forbidden files to search for all their hard links: it may see hard links of files in %s", p.relative(p.profile.unnoted))
		gaps[len(gaps)-1].Unsearched = true
	}
	for _, path := range done.ReadOnly {
		miss(LayerRunAs, "give it to that user (chown), or name its owner with run_as", "user %d may not write %s", p.user.UID, path)
	}
	switch wanted := p.profile.Limits.Processes > 0 || p.profile.Confinement.Isolation != Off; {
	case p.controls("pids") || p.profile.Confinement.UnlimitedProcesses || !wanted:
	case os.Geteuid() == 0 && p.user == nil:
		miss(LayerRlimits, "give the workspace to an ordinary user, or name one with run_as", "processes are not limited: root is exempt")
	case p.limits().Processes == 0:
		miss(LayerRlimits, "set limits.processes", "processes are not limited: its user has other processes")
	}
	return gaps
}

// relative lists the first directories, relative to the workspace if they are in it.
func (p *plan) relative(dirs []string) string {
	const most = 3
	var names []string
	for _, dir := range dirs {
		name, err := filepath.Rel(realPath(p.profile.Workspace), dir)
		if err != nil || !filepath.IsLocal(name) {
			name = dir
		}
		names = append(names, name)
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more directories", more))
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// controls reports whether the control group has a controller.
func (p *plan) controls(name string) bool {
	return p.on[LayerCgroup] && p.groups != nil && slices.Contains(p.groups.controllers, name)
}
