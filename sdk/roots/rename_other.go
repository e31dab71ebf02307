//go:build !linux

package roots

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file between two open directories. It fails with EEXIST
// if the new name is taken.
func renameNew(from int, oldName string, to int, newName string) error {
	return renameByLink(from, oldName, to, newName)
}

// syncAll makes everything durable: there is no such thing for one directory.
func syncAll(*os.File) error { return unix.Sync() }
