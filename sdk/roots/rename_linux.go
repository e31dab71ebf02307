package roots

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file between two open directories. It fails with EEXIST
// if the new name is taken.
func renameNew(from int, oldName string, to int, newName string) error {
	err := unix.Renameat2(from, oldName, to, newName, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return renameByLink(from, oldName, to, newName) // the file system cannot
	}
	return err
}

// syncAll makes durable everything below an open directory, at once: that of
// each file would take much longer.
func syncAll(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) }
