package proc_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestRules(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	allowed, other := lookPath(t, "true"), lookPath(t, "ls")
	libraries := []string{"/lib", "/lib64", "/usr/lib"}
	read, secret, written := filepath.Join(dir, "read"), filepath.Join(dir, "secret"), filepath.Join(dir, "new")
	for _, name := range []string{read, secret} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(r proc.Rules) *proc.Rules {
		r.Execute = append(r.Execute, append(libraries, self)...)
		r.Read = append(r.Read, "/proc", "/sys")
		r.Devices = []string{"/dev/null"}
		return &r
	}
	for _, tt := range []struct {
		name    string
		rules   *proc.Rules
		args    []string
		refused bool
	}{
		{"an allowed program", rules(proc.Rules{Execute: []string{allowed}}), []string{"execute", allowed}, false},
		{"another program", rules(proc.Rules{Execute: []string{allowed}}), []string{"execute", other}, true},
		{"a program that can be read", rules(proc.Rules{Read: []string{other}}), []string{"execute", other}, true},
		{"an allowed file", rules(proc.Rules{Read: []string{read}}), []string{"read", read}, false},
		{"another file", rules(proc.Rules{Read: []string{read}}), []string{"read", secret}, true},
		{"a file that can be written", rules(proc.Rules{Write: []string{dir}}), []string{"write", written}, false},
		{"a file that can be read only", rules(proc.Rules{Read: []string{dir}}), []string{"write", written}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, control := range []bool{true, false} {
				if err := os.Remove(written); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				c := command(tt.args...)
				c.Path = self
				if !control {
					c.Rules = tt.rules
				}
				got, err := proc.Run(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if refused := got.ExitCode != 0; refused != (tt.refused && !control) || got.Restricted == control {
					t.Errorf("control %t: %v under %+v: %+v, %s", control, tt.args, tt.rules, got, got.Stderr)
				}
			}
		})
	}
	t.Run("the program itself", func(t *testing.T) {
		_, err := proc.Run(t.Context(), proc.Command{Path: other, Rules: rules(proc.Rules{Execute: []string{allowed}})})
		if tool.AsError(err).Code != tool.PermissionDenied {
			t.Errorf("Run() = %v, want %s", err, tool.PermissionDenied)
		}
	})
	t.Run("what it has started", func(t *testing.T) {
		c := command("parent", "reaper stopped") // cannot be signaled
		c.Path, c.Rules = self, rules(proc.Rules{})
		if got, err := proc.Run(t.Context(), c); err != nil || got.ExitCode != 1 {
			t.Errorf("Run() = %+v, %v, want the signal refused", got, err)
		}
	})
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		t.Fatal(err)
	}
	return path
}
