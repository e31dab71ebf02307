package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Report says what is in force for one process.
type Report struct {
	// Layers are in force, e.g. "rlimits", "landlock v7", "mounts:minimal".
	Layers []string `json:"layers"`
	// Missing could not be had here.
	Missing []Gap `json:"missing,omitempty"`
}

// Gap is a layer, or a part of one, that could not be had.
type Gap struct {
	Layer Layer `json:"layer"`
	// Reason is why.
	Reason string `json:"reason"`
	// Remedy is what to change on the machine to have it; "" if nothing is known.
	Remedy string `json:"remedy,omitempty"`
	// Required says that the profile requires the layer, and that the program
	// was started without it all the same.
	Required bool `json:"required,omitempty"`
	// Unsearched says that there was too much to look for all that is protected or
	// forbidden by its name; Reason says where nothing was looked for.
	Unsearched bool `json:"unsearched,omitempty"`
	// Unhidden says that the program executes others, which may see what it must not:
	// there was too much to look for all that is forbidden.
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
			text = string(gap.Layer) // the last one of them has the reason
		}
		line += separator + text
	}
	return line
}

// Unhidden reports whether programs that the process executes may see what is forbidden,
// since there was too much to look for all of it.
func (r Report) Unhidden() bool {
	return slices.ContainsFunc(r.Missing, func(g Gap) bool { return g.Unhidden })
}

// MissingError says that a program was not started because a layer is missing
// that its profile requires.
type MissingError struct{ Gap Gap }

// Error implements error.
func (e *MissingError) Error() string {
	text := fmt.Sprintf("its sandbox requires %s, which cannot be had here: %s", e.Gap.Layer, e.Gap.Reason)
	if e.Gap.Remedy != "" {
		text += "; " + e.Gap.Remedy
	}
	return text + `, or set on_missing = "warn"`
}

// newGap says what an error means for a layer.
func newGap(layer Layer, err error) Gap {
	return Gap{Layer: layer, Reason: err.Error(), Remedy: remedy(layer, err)}
}

// remedy tells an operator what to change to have a layer.
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
		return "run the host where /proc is not masked: outside of a container, or with its /proc unmasked"
	case LayerLandlock:
		return "use Linux 5.13 or later, with landlock in the kernel parameter lsm="
	case LayerSeccomp:
		return "use a kernel with CONFIG_SECCOMP_FILTER, on amd64 or arm64"
	case LayerCgroup:
		return "run the host as a service with Delegate=yes, on a system whose control groups are of version 2"
	case LayerRunAs:
		return "give plugins mounts of their own (isolated, strict), or name the user that they run as"
	}
	return ""
}
