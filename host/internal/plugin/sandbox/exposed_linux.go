package sandbox

import (
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// place is where something is that a program must not change, in a directory where
// it may, or must not see.
type place struct {
	path string
	file FileID // the zero value: there is nothing
	// below is the directory that it was found in by its name, where it can be
	// mounted again; "" if it is protected for another reason.
	below string
}

// FileID tells files apart, also one that has been given the number of another. The
// zero value is that of nothing.
type FileID struct {
	major, minor uint32
	number       uint64
	born         unix.StatxTimestamp
}

// places returns what mounts keep the program from changing where it may change
// what is around.
func (p *plan) places() []place {
	if !p.on[LayerMounts] {
		return nil
	}
	explicit := *p.profile
	explicit.found = nil
	other, masked := explicit.protected(), p.masked()
	var all []place
	for _, path := range masked {
		all = append(all, place{path: path, file: Identify(path)})
	}
	for _, path := range p.guarded() {
		if anyWithin(masked, path) {
			continue // there is nothing to change
		}
		found := place{path: path, file: Identify(path)}
		if slices.Contains(p.profile.found, path) && !slices.ContainsFunc(other, func(o string) bool { return within(o, path) || within(realPath(o), path) }) {
			found.below = p.profile.Workspace
		}
		all = append(all, found)
	}
	return all
}

// Identify returns the identity of the file at a path, the zero value if nothing is
// there, or nothing that can be seen.
func Identify(path string) FileID {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &stat); err != nil {
		return FileID{}
	}
	return FileID{stat.Dev_major, stat.Dev_minor, stat.Ino, stat.Btime}
}

// Exposed returns the paths that the program was kept from changing, or from seeing, and
// is no longer.
// They are other files since somebody has put those in the place of the first ones,
// as editors do when they save: what is mounted on a name goes with the file.
func (p *Process) Exposed() []string {
	p.mu.Lock()
	places := slices.Clone(p.places)
	p.mu.Unlock()
	var exposed []string
	for _, place := range places {
		if Identify(place.path) != place.file || place.file != (FileID{}) && p.unmounted(place.path) {
			exposed = append(exposed, place.path)
		}
	}
	return exposed
}

// unmounted reports whether nothing is mounted on a path any more where the program
// sees it: its owner can have removed the file and put the same one back. What cannot
// be looked at, since the program does not want to, is not known.
func (p *Process) unmounted(path string) bool {
	attributes, err := p.attributes(path)
	return err == nil && attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}

// attributes returns what the kernel says of a path where the program sees it. Its
// error says that it cannot be looked at, or that the kernel does not say it.
func (p *Process) attributes(path string) (uint64, error) {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, "/proc/"+strconv.Itoa(p.pid)+"/root"+path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO, &stat)
	if err == nil && stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		err = errors.ErrUnsupported
	}
	return stat.Attributes, err
}
