package sandbox

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// place is where something is that a program must not change, in a directory where
// it may.
type place struct {
	path string
	file fileID // the zero value: there is nothing
}

// fileID tells files apart, also one that has been given the number of another.
type fileID struct {
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
		all = append(all, place{path, identify(path)})
	}
	return all
}

// identify returns the zero value if nothing is there, or nothing that can be seen.
func identify(path string) fileID {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &stat); err != nil {
		return fileID{}
	}
	return fileID{stat.Dev_major, stat.Dev_minor, stat.Ino, stat.Btime}
}

// Exposed returns a path that the program was kept from changing and is no longer,
// "" if there is none. It is another file since somebody has put that in the place
// of the first one, as editors do when they save: what is mounted on a name goes
// with the file.
func (p *Process) Exposed() string {
	for _, place := range p.places {
		if identify(place.path) != place.file || place.file != (fileID{}) && p.unmounted(place.path) {
			return place.path
		}
	}
	return ""
}

// unmounted reports whether nothing is mounted on a path any more where the program
// sees it: its owner can have removed the file and put the same one back. What cannot
// be looked at, since the program does not want to, is not known.
func (p *Process) unmounted(path string) bool {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, "/proc/"+strconv.Itoa(p.pid)+"/root"+path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO, &stat)
	return err == nil && stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}
