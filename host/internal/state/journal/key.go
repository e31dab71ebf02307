package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	keySize = 32
	// newSuffix marks a key whose journal has not begun yet.
	newSuffix = ".new"
)

// errNoKey says that the file of the key does not exist.
var errNoKey = errors.New("the key is missing")

// readKey reads a key that only its owner may read.
func readKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no file %s", errNoKey, path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > 2*keySize+1:
		return nil, fmt.Errorf("%s is not a key", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read by others (mode %v): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("%s is not a key: it should hold %d hexadecimal digits", path, 2*keySize)
	}
	return key, nil
}

// makeKey makes a key, durably, in a file of its own.
func makeKey(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(hex.AppendEncode(nil, key), '\n'))
	return key, errors.Join(err, f.Sync(), f.Close(), syncDir(filepath.Dir(path)))
}

// keepKey gives the key its lasting name: from now on, a journal without rows
// is one that was taken away.
func keepKey(path string) error {
	if err := os.Rename(path+newSuffix, path); err != nil { //nolint:gosec // the path is the operator's
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the path is the operator's
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
