package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// userDir makes a directory of a user's own in the plugin's state directory, and
// returns its path. It belongs to whom the state directory belongs: the plugin may
// run as another user than the host.
func (k *keeper) userDir(user string) (string, error) {
	if err := os.MkdirAll(k.stateDir(), 0o700); err != nil {
		return "", err
	}
	// The plugin may have changed what is in it: nothing leads out of a root.
	state, err := os.OpenRoot(k.stateDir())
	if err != nil {
		return "", err
	}
	defer func() { _ = state.Close() }() // it was only read
	// A hash: a user's name may hold anything, "../" too.
	sum := sha256.Sum256([]byte(user))
	name := filepath.Join("users", hex.EncodeToString(sum[:16]))
	for _, dir := range []string{"users", name} {
		if err := makeDirLike(state, dir); err != nil {
			return "", err
		}
	}
	return filepath.Join(k.stateDir(), name), nil
}

// makeDirLike makes a directory below a root, and gives it to the root's owner.
func makeDirLike(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	owner, err := root.Stat(".")
	if err != nil {
		return err
	}
	made, err := root.Lstat(name)
	if err != nil {
		return err
	}
	to, ok := owner.Sys().(*syscall.Stat_t)
	is, also := made.Sys().(*syscall.Stat_t)
	if !ok || !also || !made.IsDir() {
		return fmt.Errorf("%s is not a directory", name)
	}
	if is.Uid == to.Uid && is.Gid == to.Gid {
		return nil
	}
	return root.Lchown(name, int(to.Uid), int(to.Gid))
}
