package proc_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := file("text", "no program\n", 0o755)
	plain := file("plain", "#!/bin/sh\n", 0o644)
	orphan := file("orphan", "#!/no/such/interpreter\n", 0o755)
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		c    proc.Command
		code tool.Code
		want string
	}{
		{"no program", proc.Command{}, tool.InvalidArgument, "no program is given"},
		{"a missing program", proc.Command{Path: dir + "/none"}, tool.NotFound, "program not found: " + dir + "/none"},
		{"a missing name", proc.Command{Path: "no-such-program"}, tool.NotFound, "program not found: no-such-program"},
		{"a name outside of PATH", proc.Command{Path: "sh", Env: []string{"PATH=" + dir}}, tool.NotFound, "program not found: sh"},
		{"a name without PATH", proc.Command{Path: "sh", Env: []string{}}, tool.NotFound, "program not found: sh"},
		{"a name in a relative PATH", proc.Command{Path: "text", Dir: dir, Env: []string{"PATH=.:"}}, tool.NotFound, "program not found: text"},
		{"a relative path", proc.Command{Path: "./sh", Dir: "/bin"}, tool.InvalidArgument, "neither an absolute path nor a name"},
		{"a program that is not executable", proc.Command{Path: plain}, tool.PermissionDenied, "program may not be executed: " + plain},
		{"a name that is not executable", proc.Command{Path: "plain", Env: []string{"PATH=" + dir}}, tool.PermissionDenied, "program may not be executed: " + plain},
		{"a directory", proc.Command{Path: dir}, tool.InvalidArgument, "not a program but a directory: " + dir},
		{"no program at all", proc.Command{Path: text}, tool.InvalidArgument, "not a program for this machine: " + text},
		{"a script without interpreter", proc.Command{Path: orphan}, tool.NotFound, "program cannot be executed: " + orphan},
		{"a path below a file", proc.Command{Path: text + "/none"}, "", "execute "},
		{"a NUL in the path", proc.Command{Path: "/bin/sh\x00"}, tool.InvalidArgument, "a path contains a NUL byte"},
		{"a NUL in an argument", proc.Command{Path: "sh", Args: []string{"-c", "true\x00"}}, tool.InvalidArgument, "argument 2 contains a NUL byte"},
		{"a NUL in the environment", proc.Command{Path: "sh", Env: []string{"A=\x00"}}, tool.InvalidArgument, "variable A contains a NUL byte"},
		{"an environment entry without =", proc.Command{Path: "sh", Env: []string{"A"}}, tool.InvalidArgument, `entry "A" is not NAME=value`},
		{"a missing directory", proc.Command{Path: "sh", Dir: dir + "/none"}, tool.NotFound, "working directory not found: " + dir + "/none"},
		{"a file as directory", proc.Command{Path: "sh", Dir: text}, tool.InvalidArgument, "not a directory: " + text},
		{"a relative directory", proc.Command{Path: "sh", Dir: "src"}, tool.InvalidArgument, `"src" is not an absolute path`},
		{"an argument of 1 MB", proc.Command{Path: "sh", Args: []string{strings.Repeat("x", 1<<20)}}, tool.InvalidArgument, "the longest has 1048576"},
		{"too many arguments", proc.Command{Path: "sh", Args: make([]string, 1<<19)}, tool.InvalidArgument, "are too long"},
		{"more than an order can hold", proc.Command{Path: "sh", Args: slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 9)}, tool.InvalidArgument, "are too long"},
		{"a limit above the plugin's", proc.Command{Path: "sh", Limits: proc.Limits{OpenFiles: files.Max + 1}}, tool.InvalidArgument, "limit open_files is"},
		{"a negative limit", proc.Command{Path: "sh", Limits: proc.Limits{Memory: -1}}, tool.InvalidArgument, "a limit is negative"},
		{"half a second of CPU", proc.Command{Path: "sh", Limits: proc.Limits{CPUTime: time.Second / 2}}, tool.InvalidArgument, "expected whole seconds"},
		{"a negative grace period", proc.Command{Path: "sh", Grace: math.MinInt64}, tool.InvalidArgument, "grace period"},
		{"a file that is nil", proc.Command{Path: "sh", Files: []*os.File{nil}}, tool.InvalidArgument, "none may be nil"},
		{"too many files", proc.Command{Path: "sh", Files: make([]*os.File, proc.MaxFiles+1)}, tool.InvalidArgument, "17 files"},
		{"a rule with a relative path", proc.Command{Path: "sh", Rules: &proc.Rules{Write: []string{"src"}}}, tool.InvalidArgument, `rules name "src"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := proc.Run(t.Context(), tt.c)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Run() = %+v, %v, want %q", got, err, tt.want)
			}
			if tt.code != "" && tool.AsError(err).Code != tt.code {
				t.Errorf("Run() = %v, want code %s", err, tt.code)
			}
		})
	}
}

func TestLongArguments(t *testing.T) {
	args := []string{"count"}
	for range 16 {
		args = append(args, strings.Repeat("x", 64<<10))
	}
	got, err := proc.Run(t.Context(), command(args...))
	if want := "16 1048576\n"; err != nil || got.Stdout.String() != want {
		t.Errorf("Run() = %q, %v, want %q", got.Stdout, err, want)
	}
}

func TestNameIsLookedUpInItsOwnPath(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for dir, code := range map[string]string{first: "exit 1", second: "exit 2"} {
		if err := testprogram.Write(filepath.Join(dir, "program"), strings.NewReader("#!/bin/sh\n"+code+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", first)
	got, err := proc.Run(t.Context(), proc.Command{Path: "program", Env: []string{"PATH=" + second + ":" + first}})
	if err != nil || got.ExitCode != 2 {
		t.Errorf("Run() = %+v, %v, want exit code 2", got, err)
	}
	// SearchPath takes precedence over the PATH in Env.
	c := proc.Command{Path: "program", SearchPath: first, Env: []string{"PATH=" + second}}
	if got, err := proc.Run(t.Context(), c); err != nil || got.ExitCode != 1 {
		t.Errorf("Run() with a SearchPath = %+v, %v, want exit code 1", got, err)
	}
	c.SearchPath = t.TempDir()
	if _, err := proc.Run(t.Context(), c); tool.AsError(err).Code != tool.NotFound {
		t.Errorf("Run() with a SearchPath without the program = %v, want %s", err, tool.NotFound)
	}
}
