//go:build !linux

package roots

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// read appends all names in the directory. Names of unknown kind are irregular.
func (d *Dir) read(entries []DirEntry) ([]DirEntry, error) {
	fd, err := unix.Openat(d.fd, ".", openDir, 0)
	if err != nil {
		return entries, err
	}
	f := os.NewFile(uintptr(fd), d.at.rel)
	defer f.Close()
	first := len(entries)
	for {
		found, err := f.ReadDir(readBatch)
		for _, e := range found {
			entries = append(entries, DirEntry{e.Name(), e.Type()})
		}
		if len(entries)-first > maxEntries {
			return entries[:first+maxEntries], errTooMany
		}
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return entries, err
		}
	}
}
