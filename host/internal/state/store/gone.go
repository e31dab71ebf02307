package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrGone is in the chain of an error of [Store.Do], beside [ErrUnwritable], if
// the file of the database, its log or its index is not at its path any more.
// What is written to the open file would be lost.
var ErrGone = errors.New("the database was removed or replaced under the host")

// openFile is a file as it was when the store was opened.
type openFile struct {
	path string
	info fs.FileInfo
}

// openFiles returns the files that the store has open. It opens none itself:
// closing one would drop the locks of SQLite.
func openFiles(path string) ([]openFile, error) {
	var files []openFile
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			return nil, err
		}
		files = append(files, openFile{path + suffix, info})
	}
	return files, nil
}

// present returns an error if one of the open files is not at its path any more.
func (s *Store) present() error {
	for _, f := range s.files {
		info, err := os.Stat(f.path)
		if err == nil && !os.SameFile(info, f.info) {
			err = errors.New("it is another file")
		}
		if err != nil {
			return fmt.Errorf("%w: %w: %s: %w", ErrUnwritable, ErrGone, filepath.Base(f.path), err)
		}
	}
	return nil
}
