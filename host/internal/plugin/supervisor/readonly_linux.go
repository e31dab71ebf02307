package supervisor

import "golang.org/x/sys/unix"

// readOnly reports whether a directory is on a read-only file system or mount.
func readOnly(dir string) bool {
	var stat unix.Statfs_t
	return dir != "" && unix.Statfs(dir, &stat) == nil && stat.Flags&unix.ST_RDONLY != 0
}
