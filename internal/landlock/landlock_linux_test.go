package landlock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/landlock"
)

// The test binary is also the restricted program: its first argument contains the rules, the
// second says what it does.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1][0] != '{' {
		os.Exit(m.Run())
	}
	if err := restricted(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func restricted(rules, do string, args []string) error {
	runtime.LockOSThread()
	var r *landlock.Rules
	if err := json.Unmarshal([]byte(rules), &r); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if os.Getenv("CONTROL") == "" {
		ruleset, err := landlock.New(*r)
		if err != nil {
			return err
		}
		if err := ruleset.Restrict(); err != nil {
			return err
		}
	}
	switch do {
	case "read":
		_, err := os.ReadFile(args[0])
		return err
	case "list":
		_, err := os.ReadDir(args[0])
		return err
	case "write":
		return os.WriteFile(args[0], []byte("x"), 0o600)
	case "rename":
		return os.Rename(args[0], args[1])
	case "execute":
		return syscall.Exec(args[0], args, nil)
	case "signal":
		return unix.Kill(os.Getppid(), 0)
	}
	return errors.New("unknown: " + do)
}

func TestRestrict(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, d := range []string{in, out, filepath.Join(in, "sub")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tool, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	libraries := []string{"/lib", "/lib64", "/usr/lib"}
	for _, tt := range []struct {
		name    string
		rules   landlock.Rules
		do      []string
		refused bool
	}{
		{"read what is listed", landlock.Rules{Read: []string{in}}, []string{"read", in + "/f"}, false},
		{"read a listed file", landlock.Rules{Read: []string{in + "/f"}}, []string{"read", in + "/f"}, false},
		{"list what is listed", landlock.Rules{Read: []string{in}}, []string{"list", in}, false},
		{"read beside", landlock.Rules{Read: []string{in}}, []string{"read", out + "/f"}, true},
		{"list beside", landlock.Rules{Read: []string{in}}, []string{"list", out}, true},
		{"write what can be read", landlock.Rules{Read: []string{in}}, []string{"write", in + "/f"}, true},
		{"make what can be read", landlock.Rules{Read: []string{in}}, []string{"write", in + "/new"}, true},
		{"write", landlock.Rules{Write: []string{in}}, []string{"write", in + "/g"}, false},
		{"rename across directories", landlock.Rules{Write: []string{in}}, []string{"rename", in + "/f", in + "/sub/f"}, false},
		{"rename out", landlock.Rules{Write: []string{in}}, []string{"rename", in + "/f", out + "/g"}, true},
		{"execute what is written", landlock.Rules{Write: []string{filepath.Dir(tool)}, Read: libraries}, []string{"execute", tool}, true},
		{"execute", landlock.Rules{Execute: append(libraries, tool)}, []string{"execute", tool}, false},
		{"a path that is missing", landlock.Rules{Read: []string{dir + "/none", in}}, []string{"read", in + "/f"}, false},
		{"a path that goes on after a file", landlock.Rules{Read: []string{in + "/f/none", in}}, []string{"read", in + "/f"}, false},
		{"a device", landlock.Rules{Devices: []string{"/dev/null"}}, []string{"write", "/dev/null"}, false},
		{"signal", landlock.Rules{}, []string{"signal"}, false},
		{"signal out of scope", landlock.Rules{Scoped: true}, []string{"signal"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, control := range []bool{true, false} {
				for _, file := range []string{in + "/f", out + "/f"} {
					if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				err := run(t, control, tt.rules, tt.do)
				switch allowed := control || !tt.refused; {
				case allowed && err != nil:
					t.Errorf("control %t, %v under %+v: %v", control, tt.do, tt.rules, err)
				case !allowed && (err == nil || !strings.Contains(err.Error(), "permi")):
					t.Errorf("%v under %+v: %v, want it refused", tt.do, tt.rules, err)
				}
			}
		})
	}
}

// run runs the test binary under the rules, or in a control without them.
func run(t *testing.T, control bool, rules landlock.Rules, do []string) error {
	t.Helper()
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", append([]string{string(text)}, do...)...)
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"} // a race detector would have it end a second late
	if control {
		cmd.Env = append(cmd.Env, "CONTROL=1")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
