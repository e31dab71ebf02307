package auth

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The keys of a host, files in its state directory.
const (
	// AgentKey makes a caller an agent, over HTTP on loopback.
	AgentKey = "agent.token"
	// ApproverKey makes a caller an approver and an admin, on the control
	// socket only. A plugin's process may be able to read the file; there, who
	// it is betrays it.
	ApproverKey = "approver.key"
)

// maxKeyFile bounds what is read of a key's file, in bytes.
const maxKeyFile = 256

// EnsureKey returns the secret of a key in a directory and makes one the first
// time: a file that only its owner can read, which after a crash is there
// either wholly or not at all. It refuses what [ReadKey] refuses.
func EnsureKey(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	secret, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret, _ = NewToken()
	if err := writeKey(path, secret+"\n"); err != nil {
		return "", fmt.Errorf("make the key %s: %w", path, err)
	}
	return ReadKey(path) // another process may have been first
}

// ReadKey returns the secret in a key's file. It refuses a file that others
// may read or that belongs to another account, and one that is no key.
func ReadKey(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return "", fmt.Errorf("read the key %s: %w", path, err)
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", fmt.Errorf("the key %s is no regular file", path)
	case int(stat.Uid) != os.Geteuid():
		return "", fmt.Errorf("the key %s belongs to uid %d, not to this account", path, stat.Uid)
	case stat.Mode&0o077 != 0:
		return "", fmt.Errorf("the key %s is open to others (mode %04o): they may know it by now; remove it, and the host makes a new one",
			path, stat.Mode&0o7777)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	secret := strings.TrimSuffix(string(text), "\n")
	if err := CheckForm(secret); err != nil {
		return "", fmt.Errorf("the key %s is damaged (%w); remove it, and the host makes a new one", path, err)
	}
	return secret, nil
}

// writeKey makes a file with a text unless there is one of its name. The text
// is on disk before the file has its name.
func writeKey(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // O_EXCL, mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // at worst a spare file that nobody reads stays
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
