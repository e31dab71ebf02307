package roots_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

var _ roots.Call = (*sdk.Call)(nil)

// call is a call with rules of the host.
type call struct {
	roots, protected []string
	policy           tool.FilePolicy
}

func (c call) Roots() []string        { return c.roots }
func (c call) Protected() []string    { return c.protected }
func (c call) Files() tool.FilePolicy { return c.policy }

// TestFor checks that each of the host's rules is in force.
func TestFor(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"plain", "secret.key", "allowed.key", "forbidden", "protected"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := roots.For(call{
		roots: []string{dir}, protected: []string{filepath.Join(dir, "protected")},
		policy: tool.FilePolicy{
			Sensitive: []string{"*.key"}, Allowed: []string{filepath.Join(dir, "allowed.key")},
			Forbidden: []string{filepath.Join(dir, "forbidden")}, Protect: []string{"git"},
		},
	}, &roots.Shared{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, want := range map[string]bool{"plain": true, "secret.key": false, "allowed.key": true, "forbidden": false, "protected": true} {
		_, err := r.Stat(name)
		if (err == nil) != want {
			t.Errorf("Stat(%s) = %v, want success: %v", name, err, want)
		}
	}
	for name, want := range map[string]bool{"plain": true, "protected": false, ".git/config": false, ".vscode/tasks.json": true} {
		target, err := r.Target(name, roots.TargetOptions{Parents: true})
		if err == nil {
			err = target.Writable()
			target.Close()
		}
		if (err == nil) != want {
			t.Errorf("a change of %s: %v, want success: %v", name, err, want)
		}
	}
	if _, err := roots.For(call{}, nil); tool.AsError(err).Code != tool.Unavailable {
		t.Errorf("For a call without folders = %v, want code %q", err, tool.Unavailable)
	}
}
