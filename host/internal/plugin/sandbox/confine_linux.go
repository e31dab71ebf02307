package sandbox

import (
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SelfPath returns the file of this program, even if its path names another file now.
func SelfPath() (string, error) { return "/proc/self/exe", nil }

// attr gives a launcher its own session: it leads a process group that can be killed, and
// has no terminal that could send it SIGINT or that it could write input to. The planned
// namespaces are made with the process.
func (p *plan) attr(group *group) *syscall.SysProcAttr {
	// The launcher sets the signal again; this covers the time until then.
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	for layer, flag := range map[Layer]uintptr{
		LayerUserNS: unix.CLONE_NEWUSER, LayerPIDNS: unix.CLONE_NEWPID, LayerNetNS: unix.CLONE_NEWNET,
		LayerIPCNS: unix.CLONE_NEWIPC, LayerMounts: unix.CLONE_NEWNS,
	} {
		if p.on[layer] {
			attr.Cloneflags |= flag
		}
	}
	if group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(group.file.Fd())
	}
	if p.on[LayerUserNS] {
		// Users have the same ids inside and outside. The launcher of a root host also needs
		// the host's own user for its work.
		uid, gid := os.Geteuid(), os.Getegid()
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		if p.user != nil && p.user.UID != uid {
			attr.UidMappings = append(attr.UidMappings, syscall.SysProcIDMap{ContainerID: p.user.UID, HostID: p.user.UID, Size: 1})
		}
		if p.user != nil && p.user.GID != gid {
			attr.GidMappings = append(attr.GidMappings, syscall.SysProcIDMap{ContainerID: p.user.GID, HostID: p.user.GID, Size: 1})
		}
		attr.GidMappingsEnableSetgroups = uid == 0
		if uid != 0 {
			// Capabilities of the namespace. Without this, an ordinary user would lose them
			// when the launcher is executed.
			attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
		}
	}
	return attr
}

// keepDescriptors keeps descriptors that this process has inherited from programs that it starts.
func keepDescriptors() error { return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// always returns what every program has besides the configurable layers.
func always() []string {
	return []string{"reaper", "subreaper", "session", "descriptors closed", "umask 077"}
}

// missingHere returns the layers that this operating system never has.
func missingHere() map[Layer]Gap { return map[Layer]Gap{} }
