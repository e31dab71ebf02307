package sandbox

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// place is where something is that a program must not change, in a directory where
// it may.
type place struct {
	path string
	file FileID // the zero value: there is nothing
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
	var all []place
	for _, path := range p.guarded() {
		all = append(all, place{path, Identify(path)})
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

// Exposed returns the paths that the program was kept from changing and is no longer.
// They are other files since somebody has put those in the place of the first ones,
// as editors do when they save: what is mounted on a name goes with the file.
func (p *Process) Exposed() []string {
	var exposed []string
	for _, place := range p.places {
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
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, "/proc/"+strconv.Itoa(p.pid)+"/root"+path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO, &stat)
	return err == nil && stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}
