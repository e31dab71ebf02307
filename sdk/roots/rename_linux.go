package roots

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// renameNew renames a file between two open directories. It fails with EEXIST
// if the new name is taken.
func renameNew(from int, oldName string, to int, newName string) error {
	err := unix.Renameat2(from, oldName, to, newName, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return renameByLink(from, oldName, to, newName) // the file system does not support it
	}
	return err
}

// mountOf returns the mount of a directory.
func mountOf(dir *os.File) (uint64, error) {
	var info unix.Statx_t
	err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &info)
	if err == nil && info.Mask&unix.STATX_MNT_ID == 0 {
		err = unix.ENOSYS
	}
	return info.Mnt_id, err
}

// changeTime returns when a file's inode last changed: its content, mode or name.
func changeTime(info fs.FileInfo) syscall.Timespec {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return syscall.Timespec{}
	}
	return stat.Ctim
}

// syncAll makes everything below an open directory durable at once, much faster than one file at
// a time.
func syncAll(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) }
