package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
)

func TestEnsureKey(t *testing.T) {
	dir := t.TempDir()
	defer syscall.Umask(syscall.Umask(0)) // even then, others must not be able to read it
	secret, err := auth.EnsureKey(dir, auth.AgentKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := auth.CheckForm(secret); err != nil {
		t.Errorf("the new key: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, auth.AgentKey))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode of the key = %v, want -rw-------", info.Mode())
	}
	if again, err := auth.EnsureKey(dir, auth.AgentKey); err != nil || again != secret {
		t.Errorf("EnsureKey again = %q, %v; want the first one", again, err)
	}
	if other, err := auth.EnsureKey(dir, auth.ApproverKey); err != nil || other == secret {
		t.Errorf("EnsureKey of another name = %q, %v; want another one", other, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("the directory holds %v, want the two keys", entries)
	}
}

// TestEnsureKeyAtOnce checks that all concurrent callers get the same key.
func TestEnsureKeyAtOnce(t *testing.T) {
	dir := t.TempDir()
	secrets := make([]string, 16)
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() {
			var err error
			if secrets[i], err = auth.EnsureKey(dir, auth.ApproverKey); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, secret := range secrets {
		if secret != secrets[0] {
			t.Fatalf("EnsureKey gave two different keys")
		}
	}
}

func TestReadKeyRefuses(t *testing.T) {
	secret, _ := auth.NewToken()
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"a key that the group may read", secret + "\n", 0o640, "others can open"},
		{"a key that others may write", secret + "\n", 0o602, "others can open"},
		{"half a key", secret[:20], 0o600, "damaged"},
		{"an empty file", "", 0o600, "damaged"},
		{"a huge file", strings.Repeat("x", 1<<20), 0o600, "damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			write(t, path, tt.text, tt.mode)
			refuseKey(t, path, tt.want, secret)
		})
	}
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	write(t, there, secret+"\n", 0o600)
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink(there, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	refuseKey(t, link, "link is a symbolic link; name the file itself", secret)
	refuseKey(t, pipe, "not a regular file", secret)
	refuseKey(t, dir, "not a regular file", secret)
}

// refuseKey checks that a file is refused, and that the error does not contain the key.
func refuseKey(t *testing.T, path, want, secret string) {
	t.Helper()
	got, err := auth.ReadKey(path)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("ReadKey(%s) = %q, %v; want an error with %q", path, got, err, want)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error tells the key: %v", err)
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestReadToken(t *testing.T) {
	secret, _ := auth.NewToken()
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		want       string // the error; "" means none
	}{
		{"a token", secret, 0o600, ""},
		{"a line", secret + "\n", 0o400, ""},
		{"a secret of the administrator's own", "correct-horse-battery-staple", 0o600, ""},
		{"a file that the group may read", secret, 0o640, "others can open"},
		{"a file that others may read", secret, 0o604, "others can open"},
		{"a short secret", "short", 0o600, "at least 20 characters"},
		{"an empty file", "\n", 0o600, "at least 20 characters"},
		{"two lines", secret + "\n" + secret + "\n", 0o600, "nothing else"},
		{"a header", "Authorization: Bearer " + secret, 0o600, "nothing else"},
		{"a carriage return", secret + "\r\n", 0o600, "nothing else"},
		{"a huge file", strings.Repeat("x", 1<<20), 0o600, "nothing else"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(path, []byte(tt.text), tt.mode); err != nil {
				t.Fatal(err)
			}
			got, err := auth.ReadToken(path)
			if tt.want == "" {
				if err != nil || got != strings.TrimSpace(tt.text) {
					t.Errorf("ReadToken = %q, %v; want the token", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("ReadToken = %q, %v; want an error about %q without the secret", got, err, tt.want)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	if got, err := auth.ReadToken(path + ".link"); err == nil || !strings.Contains(err.Error(), "name the file itself") {
		t.Errorf("ReadToken through a link = %q, %v, want an error that says what to name", got, err)
	}
	if got, err := auth.ReadToken(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ReadToken of no file = %q, %v", got, err)
	}
}
