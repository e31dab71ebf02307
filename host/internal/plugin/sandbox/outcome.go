package sandbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// gaps returns what could not be had, and marks what of it the profile requires.
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

// report says what is in force after the launcher has done what was ordered.
func (p *plan) report(done *launch.Details) Report {
	texts := map[Layer]string{LayerMounts: "mounts:ro", LayerProc: "proc:fresh", LayerCaps: "caps=0"}
	if p.minimal {
		texts[LayerMounts] = "mounts:minimal"
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
	r.Missing = append(r.Missing, p.partial(done)...)
	return r
}

// partial returns what layers that are in force do not do here.
func (p *plan) partial(done *launch.Details) []Gap {
	var gaps []Gap
	miss := func(layer Layer, remedy, reason string, args ...any) {
		gaps = append(gaps, Gap{Layer: layer, Reason: fmt.Sprintf(reason, args...), Remedy: remedy})
	}
	if abi := done.Landlock; p.on[LayerLandlock] && abi < 3 && !p.on[LayerMounts] {
		miss(LayerLandlock, "use Linux 6.2 or later", "version %d does not keep files from being emptied (truncate)", abi)
	}
	if abi := done.Landlock; p.on[LayerLandlock] && abi < 6 && !p.on[LayerPIDNS] {
		miss(LayerLandlock, "use Linux 6.12 or later", "version %d does not keep other processes of its user from being signaled", abi)
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
	if p.checksOnly() {
		miss(LayerMounts, "", "what it must not change in the workspace is protected by checks only")
	}
	if p.byChecksOnly() {
		miss(LayerMounts, "", "what paths.forbidden covers is kept from it by the host's checks and its own only")
	}
	if len(p.profile.unsearched) > 0 && p.on[LayerMounts] {
		miss(LayerMounts, "name what matters in protect, or make the workspace smaller",
			"the workspace is too large to look for all that is protected by its name: what is in %s is protected by checks only", p.relative(p.profile.unsearched))
		gaps[len(gaps)-1].Unsearched = true
	}
	if len(p.profile.beyond) > 0 && p.on[LayerMounts] {
		miss(LayerMounts, "write paths.forbidden without wildcards, or make the workspace smaller",
			"there is too much to look for all that paths.forbidden covers: what is in %s is kept from it by checks only", p.relative(p.profile.beyond))
		gap := &gaps[len(gaps)-1]
		gap.Unsearched, gap.Unhidden = true, len(p.profile.Confinement.Exec) > 0
		if gap.Unhidden {
			gap.Reason += ", and each call is confirmed"
		}
	}
	if len(p.profile.unnoted) > 0 && p.on[LayerMounts] {
		miss(LayerMounts, "keep no hard links of forbidden files where it may look",
			"there are too many forbidden files to look for all their other names: hard links of what is in %s may be seen", p.relative(p.profile.unnoted))
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
		miss(LayerRlimits, "set limits.processes", "processes are not limited: its user has others")
	}
	return gaps
}

// relative names the first of some directories, those in the workspace relative to it.
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
