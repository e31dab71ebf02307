package install

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// maxFiles and maxBytes bound a package with all that it needs.
	maxFiles = 200_000
	maxBytes = 2 << 30
)

var errTooLarge = errors.New("the package is too large: more than 200,000 files or 2 GiB")

// Digest returns "sha256:" and the SHA-256 of the names, kinds and contents of everything in a
// directory. Symbolic links count by their text; anything else than files, directories and links is
// refused. Modes and times do not count, except whether a file can be executed.
func Digest(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }() // it was only read
	sum := sha256.New()
	files, bytes := 0, int64(0)
	buffer := make([]byte, 64<<10)
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if files++; files > maxFiles {
			return errTooLarge
		}
		if bytes += info.Size(); bytes > maxBytes {
			return errTooLarge
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			fmt.Fprintf(sum, "dir %q\n", name)
		case mode&fs.ModeSymlink != 0:
			target, err := root.Readlink(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "link %q %q\n", name, target)
		case mode.IsRegular():
			fmt.Fprintf(sum, "file %q %t %d\n", name, mode&0o100 != 0, info.Size())
			f, err := root.Open(name)
			if err != nil {
				return err
			}
			n, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.LimitReader(f, info.Size()+1), buffer)
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
			if n != info.Size() {
				return fmt.Errorf("%s changed while it was read", name)
			}
		default:
			return fmt.Errorf("%s is neither a file nor a directory nor a link", name)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// seal makes a package this account's, readable by every account and changeable by none, and removes
// links that lead out of it. Nothing of the package runs.
func seal(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only read
	var dirs []string
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := root.Lchown(name, os.Geteuid(), os.Getegid()); err != nil { // npm ran as another user if the host is root
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			dirs = append(dirs, name)
			return root.Chmod(name, 0o755)
		case mode&fs.ModeSymlink != 0:
			if _, err := root.Stat(name); err != nil { // it leads nowhere, or out
				return root.Remove(name)
			}
			return nil
		case mode.IsRegular():
			return root.Chmod(name, 0o444|mode&0o111)
		}
		return root.Remove(name)
	})
	for _, name := range dirs[min(1, len(dirs)):] { // a directory without the right to write cannot be renamed
		if err == nil {
			err = root.Chmod(name, 0o555)
		}
	}
	return err
}

// removeAll removes a directory whose directories may be sealed.
func removeAll(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error { // what cannot be changed is told by RemoveAll
		if err == nil && entry.IsDir() {
			return root.Chmod(name, 0o700)
		}
		return nil
	})
	return errors.Join(root.Close(), os.RemoveAll(dir))
}
