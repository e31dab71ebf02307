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

// The keys of a host are files in its state directory.
const (
	// AgentKey is the key of an agent, over HTTP on loopback.
	AgentKey = "agent.token"
	// ApproverKey is the key of an approver and admin, for the control socket only. A plugin
	// that can read the file is still refused, because the socket checks its process.
	ApproverKey = "approver.key"
)

// LocalToken is the name of the token whose secret is [AgentKey], for agents on this machine. The
// configuration does not list it.
const LocalToken = "local"

// maxKeyFile bounds the file of a key, in bytes.
const maxKeyFile = 256

// EnsureKey returns the secret of a key in a directory. If there is none, it creates one in a
// file that only its owner can read; after a crash the file is complete or missing. It refuses
// what [ReadKey] refuses.
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
	return ReadKey(path) // another process was first
}

// RenewKey replaces a key in a directory, and returns the new secret.
func RenewKey(dir, name string) (string, error) {
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("replace the key: %w", err)
	}
	return EnsureKey(dir, name)
}

// ReadKey returns the secret in a key file. It refuses a file that others can read or that
// belongs to another account, and a file that does not contain a key.
func ReadKey(path string) (string, error) {
	secret, err := ReadPrivate(path, "the key", "remove it, and the host makes a new one", maxKeyFile)
	if err != nil {
		return "", err
	}
	if err := CheckForm(secret); err != nil {
		return "", fmt.Errorf("the key %s is damaged (%w); remove it, and the host makes a new one", path, err)
	}
	return secret, nil
}

// ReadToken returns the secret of a configured token from a file. It refuses a file that
// others can read or that belongs to another account, and a secret that is shorter than
// [MinSecret] or more than one line.
func ReadToken(path string) (string, error) {
	secret, err := ReadPrivate(path, "the token file", "make a new token: toolhost token new", maxKeyFile)
	switch {
	case err != nil:
		return "", err
	case len(secret) < MinSecret:
		return "", fmt.Errorf("the token file %s has no token: a secret has at least %d characters", path, MinSecret)
	case len(secret) >= maxKeyFile || strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("the token file %s must hold one token and nothing else", path)
	}
	return secret, nil
}

// ReadPrivate returns the first bytes, at most most, of a file that only this account can read,
// without a final newline. It refuses any other file, also a symbolic link. what names it in
// errors, such as "the key", and advice says what to do about one that others could read.
func ReadPrivate(path, what, advice string, most int64) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return "", fmt.Errorf("%s %s is a symbolic link; name the file itself", what, path)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return "", fmt.Errorf("read %s %s: %w", what, path, err)
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", fmt.Errorf("%s %s is not a regular file", what, path)
	case int(stat.Uid) != os.Geteuid():
		return "", fmt.Errorf("%s %s belongs to uid %d, not to this account", what, path, stat.Uid)
	case stat.Mode&0o077 != 0:
		return "", fmt.Errorf("others can open %s %s (mode %04o), so it may be known; %s", what, path, stat.Mode&0o7777, advice)
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// writeKey creates a file with a text unless the file exists. The text is on disk before the
// file has its name.
func writeKey(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // O_EXCL, mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // at worst, a temporary file remains
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
