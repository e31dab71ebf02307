package proc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// state is the command's view of itself.
type state struct {
	Args, Env   []string
	Dir         string
	Descriptors []string // inherited ones
	Leader      bool     // of a session
	Status      map[string]string
	Limits      map[string]string
}

func inspect([]string) error {
	s := state{Args: os.Args, Env: os.Environ(), Status: map[string]string{}, Limits: map[string]string{}}
	s.Dir, _ = os.Readlink("/proc/self/cwd")
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			return err
		}
		// Go marks the descriptors that it opens itself; inherited ones are not marked.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags == 0 {
			s.Descriptors = append(s.Descriptors, filepath.Base(name))
		}
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return err
	}
	s.Leader = session == os.Getpid()
	for _, read := range []struct {
		file string
		into map[string]string
		cut  func(string) (string, string, bool)
	}{
		{"/proc/self/status", s.Status, func(line string) (string, string, bool) { return strings.Cut(line, ":") }},
		{"/proc/self/limits", s.Limits, func(line string) (string, string, bool) {
			return strings.TrimSpace(line[:min(25, len(line))]), line[min(25, len(line)):], true
		}},
	} {
		text, err := os.ReadFile(read.file)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if name, value, ok := read.cut(line); ok {
				fields := strings.Fields(value)
				read.into[name] = strings.Join(fields[:min(2, len(fields))], " ")
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// look runs a command that inspects itself.
func look(t *testing.T, c proc.Command) state {
	t.Helper()
	got, err := proc.Run(t.Context(), c)
	if err != nil || got.ExitCode != 0 {
		t.Fatalf("Run() = %+v, %v", got, err)
	}
	var s state
	if err := json.Unmarshal(got.Stdout.Head, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCommandInheritsNothing(t *testing.T) {
	t.Setenv("PLUGIN_CLIENT_CERT", "secret")
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGPIPE)
	leaked, err := unix.Open("/", unix.O_RDONLY, 0) // not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	c := command("inspect", "with", "\xff\n")
	c.Env = []string{"A=1", "B=2=3", "C="}
	c.Dir = t.TempDir()
	s := look(t, c)
	if diff := cmp.Diff([]string{"A=1", "B=2=3", "C="}, s.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if want := []string{"/proc/self/exe", "inspect", "with", "\ufffd\n"}; !slices.Equal(s.Args, want) { // JSON cannot contain \xff
		t.Errorf("arguments %q, want %q", s.Args, want)
	}
	if !slices.Equal(s.Descriptors, []string{"0", "1", "2"}) {
		t.Errorf("descriptors %q", s.Descriptors)
	}
	if dir, err := filepath.EvalSymlinks(c.Dir); err != nil || s.Dir != dir {
		t.Errorf("directory %q, want %q, %v", s.Dir, dir, err)
	}
	if !s.Leader {
		t.Error("it does not lead a session")
	}
	for _, name := range []string{"SigIgn", "SigBlk"} {
		if strings.Trim(s.Status[name], "0") != "" {
			t.Errorf("%s is %s", name, s.Status[name])
		}
	}
	if s := look(t, proc.Command{Path: "/proc/self/exe", Args: []string{"inspect"}}); s.Dir != "/" || !slices.Equal(s.Env, proc.DefaultEnv()) {
		t.Errorf("the default command runs in %q with %q", s.Dir, s.Env)
	}
	c = command("inspect")
	c.Env = []string{}
	if s := look(t, c); len(s.Env) > 0 {
		t.Errorf("environment %q, want none", s.Env)
	}
}

func TestLimits(t *testing.T) {
	c := command("inspect")
	free := look(t, c)
	if free.Limits["Max core file size"] != "0 0" {
		t.Errorf("core file size %q", free.Limits["Max core file size"])
	}
	c.Limits = proc.Limits{CPUTime: 7 * time.Second, Memory: 3 * tool.GiB, FileSize: tool.MiB, OpenFiles: 77, Processes: 5000}
	limited := look(t, c).Limits
	for name, want := range map[string]string{
		"Max cpu time": "7 8", "Max data size": "3221225472 3221225472", "Max file size": "1048576 1048576",
		"Max open files": "77 77", "Max processes": "5000 5000", "Max core file size": "0 0",
	} {
		if limited[name] != want {
			t.Errorf("%s is %q, want %q", name, limited[name], want)
		}
		if name != "Max core file size" && free.Limits[name] == want {
			t.Errorf("%s is %q without limits, too", name, want)
		}
	}
	// The limits of one command do not apply to the next, nor to the plugin.
	if diff := cmp.Diff(free.Limits, look(t, command("inspect")).Limits); diff != "" {
		t.Errorf("limits afterwards (-before +after):\n%s", diff)
	}
}

// TestPluginKeepsProcesses checks that the plugin can start processes, however many its
// commands start.
func TestPluginKeepsProcesses(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	hard := min(own.Max, 4000)
	for _, soft := range []uint64{hard, hard / 2} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "limited", strconv.FormatUint(soft, 10), strconv.FormatUint(hard, 10))
		cmd.Env = []string{"GORACE=atexit_sleep_ms=0"}
		out, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("%[1]d %[1]d\n", soft-soft/4); err != nil || string(out) != want {
			t.Errorf("with %d processes of its own, at most %d, a plugin gives a command %q, %v, want %q", soft, hard, out, err, want)
		}
	}
}

// limited is a plugin with few processes. It prints how many a command may have.
func limited(args []string) error {
	soft, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	hard, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: soft, Max: hard}); err != nil {
		return err
	}
	defer proc.DropReapers()
	got, err := proc.Run(context.Background(), command("inspect"))
	if err != nil {
		return err
	}
	var s state
	if err := json.Unmarshal(got.Stdout.Head, &s); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, s.Limits["Max processes"])
	return nil
}
