//go:build !linux

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
	return renameByLink(from, oldName, to, newName)
}

// mountOf returns the file system of a directory.
func mountOf(dir *os.File) (uint64, error) {
	var info unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &info)
	return uint64(info.Dev), err
}

// changeTime returns the zero time: the field's name differs between systems.
func changeTime(fs.FileInfo) syscall.Timespec { return syscall.Timespec{} }

// syncAll makes everything durable; these systems cannot do it for one directory.
func syncAll(*os.File) error { return unix.Sync() }
