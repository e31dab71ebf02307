package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/sdk/tool"
)

// try makes a call of the tool "attempt" with a tier. failed is the tool's error, or "".
func (k *kept) try(t *testing.T, tier tool.Tier, user string, args attemptArgs) (failed string) {
	t.Helper()
	arguments, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	call := tool.Call{ID: "tc_1", Tool: "attempt", Arguments: arguments, Tier: tier, Context: tool.Context{User: user, Session: "one"}}
	result, _, err := k.Run(ctx, "calm", "", call, tool.Sink{})
	switch {
	case err != nil:
		t.Fatalf("Run(%+v) = %v", args, err)
	case result.Error != nil:
		return result.Error.Message
	}
	return ""
}

// twins are the plugins of an attack: with and without SplitTiers.
type twins struct {
	split, control *kept
	home           string // another directory that both may write
}

// newTwins runs a plugin that may change about everything, once split and once not.
func newTwins(t *testing.T, scope Scope, isolation sandbox.Isolation) twins {
	t.Helper()
	home, ws := openDir(t), openDir(t)
	p := Plugin{
		Name: "calm", Path: program(t, "calm"), Limits: sandbox.DefaultLimits(), Scope: scope,
		Confinement: sandbox.Confinement{
			Isolation: isolation, Workspace: sandbox.WriteWorkspace, Write: []string{home}, Exec: []string{sandbox.ExecSystem}, Network: sandbox.NetworkHost,
		},
	}
	run := func(p Plugin) *kept {
		k := keepUnder(t, openDir(t), workspace.Dirs{Shared: ws}, p)
		if err := k.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		return k
	}
	w := twins{home: home, control: run(p)}
	p.SplitTiers, p.Confinement.WarnOnMissing = true, true
	w.split = run(p)
	return w
}

// openDir makes a directory that the user of a plugin can reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// onFile stages a file to change, which is called as the other writer names it.
func (w twins) onFile(dir, kind string) func(*testing.T, string) (attemptArgs, func() bool) {
	return func(t *testing.T, name string) (attemptArgs, func() bool) {
		t.Helper()
		path := filepath.Join(dir, "victim-"+name)
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 4096), 0o644); err != nil {
			t.Fatal(err)
		}
		look := func() string {
			info, err := os.Stat(path)
			content, _ := os.ReadFile(path) // it may be gone
			if err != nil {
				return "gone"
			}
			return fmt.Sprint(info.Mode(), info.ModTime(), string(content))
		}
		before := look()
		return attemptArgs{Kind: kind, Path: path, Other: path + ".new"}, func() bool { return look() != before }
	}
}

// onNew stages a name that the attempt makes.
func (w twins) onNew(dir, kind string) func(*testing.T, string) (attemptArgs, func() bool) {
	return func(t *testing.T, name string) (attemptArgs, func() bool) {
		t.Helper()
		made := filepath.Join(dir, "new-"+kind+name)
		args := attemptArgs{Kind: kind, Path: made}
		if kind == "link" || kind == "symlink" {
			args.Path, args.Other = filepath.Join(dir, "target-"+kind+name), made
			if err := os.WriteFile(args.Path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return args, func() bool {
			_, err := os.Lstat(made)
			return err == nil
		}
	}
}

// onPipe stages a named pipe that another program reads.
func onPipe(dir string) func(*testing.T, string) (attemptArgs, func() bool) {
	return func(t *testing.T, name string) (attemptArgs, func() bool) {
		t.Helper()
		path := filepath.Join(dir, "pipe-"+name)
		if err := unix.Mkfifo(path, 0o666); err != nil {
			t.Fatal(err)
		}
		reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { reader.Close() })
		return attemptArgs{Kind: "fifo", Path: path}, func() bool {
			n, err := unix.Read(int(reader.Fd()), make([]byte, 64))
			return err == nil && n > 0
		}
	}
}

// onSocket stages a listener. A path is that of a directory for it.
func onSocket(network, address string) func(*testing.T, string) (attemptArgs, func() bool) {
	return func(t *testing.T, name string) (attemptArgs, func() bool) {
		t.Helper()
		at, kind := address, network
		if network != "tcp" {
			at = filepath.Join(address, "s"+strconv.Itoa(len(name))+name[:4])
		}
		if network == "unixgram" {
			conn, err := net.ListenPacket(network, at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			return attemptArgs{Kind: "datagram", Path: at}, func() bool {
				mark(t, network, at) // arrives after what the attempt has sent
				got := make([]byte, 64)
				n, _, err := conn.ReadFrom(got)
				return err == nil && string(got[:n]) != "mark"
			}
		}
		listener, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		at = listener.Addr().String()
		return attemptArgs{Kind: kind, Path: at}, func() bool {
			mark(t, network, at)
			conn, err := listener.Accept()
			if err != nil {
				return false
			}
			defer conn.Close()
			content, err := io.ReadAll(conn)
			return err == nil && string(content) != "mark"
		}
	}
}

// mark sends a text to a listener.
func mark(t *testing.T, network, address string) {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("mark")); err != nil {
		t.Fatal(err)
	}
}

// TestReaderReachesNoProcess: the reader reaches neither its twin nor the state of the plugin, nor a
// file that the host has open. The controls are a plugin without isolation, and a child of the test
// that inherits what the launcher closes.
func TestReaderReachesNoProcess(t *testing.T) {
	t.Parallel()
	w := newTwins(t, Shared, sandbox.Auto)
	free := Plugin{Name: "calm", Path: program(t, "calm"), Confinement: sandbox.Confinement{Isolation: sandbox.Off}, Limits: sandbox.DefaultLimits()}
	control := keepPlugins(t, free)

	adjusted := func(pid int) bool {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(content)) == "1000"
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleeper.Process.Kill() })
	if failed := control.try(t, tool.ReadOnly, "ada", attemptArgs{Kind: "proc", PID: sleeper.Process.Pid}); failed != "" || !adjusted(sleeper.Process.Pid) {
		t.Errorf("control: the file in /proc was not written: %s", failed)
	}
	if failed := control.try(t, tool.ReadOnly, "ada", attemptArgs{Kind: "signal", PID: sleeper.Process.Pid}); failed != "" {
		t.Errorf("control: the process was not killed: %s", failed)
	}
	_ = sleeper.Wait() // it was killed

	if failed := w.split.try(t, tool.SideEffecting, "ada", attemptArgs{Kind: "create", Path: filepath.Join(w.split.managers["calm"].stateDir(), "kept")}); failed != "" {
		t.Errorf("control: the other process cannot write its state: %s", failed)
	}
	twin := w.split.live("calm").proc.PID()
	for _, args := range []attemptArgs{
		{Kind: "signal", PID: twin},
		{Kind: "proc", PID: twin},
		{Kind: "append", Path: filepath.Join(w.split.managers["calm"].stateDir(), "kept")},
		{Kind: "create", Path: filepath.Join(w.split.managers["calm"].stateDir(), "new")},
	} {
		if failed := w.split.try(t, tool.ReadOnly, "ada", args); failed == "" {
			t.Errorf("the reader did %+v", args)
		}
	}
	if w.split.live("calm").proc.PID() != twin || adjusted(twin) {
		t.Error("the reader reached its twin")
	}
	if kept, err := os.ReadFile(filepath.Join(w.split.managers["calm"].stateDir(), "kept")); err != nil || string(kept) != "1000\n" {
		t.Errorf("the state of the plugin is %q, %v, want what the other process wrote", kept, err)
	}
	if _, err := os.Lstat(filepath.Join(w.split.managers["calm"].stateDir(), "new")); !os.IsNotExist(err) {
		t.Errorf("the reader made a file in the state of the plugin: %v", err)
	}
}

// TestReaderInheritsNothing: a file that the host has open for writing, and that a child would
// inherit, is no way to change it.
func TestReaderInheritsNothing(t *testing.T) {
	w := newTwins(t, Shared, sandbox.Auto)
	path := filepath.Join(w.split.workspace, "open")
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT, 0o644) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer func() { must(syscall.Close(fd)) }()
	if out, err := exec.Command("/bin/sh", "-c", fmt.Sprintf("echo inherited >/proc/self/fd/%d", fd)).CombinedOutput(); err != nil {
		t.Fatalf("control: a child does not inherit the file: %v %s", err, out)
	}
	before, err := os.ReadFile(path)
	if err != nil || string(before) != "inherited\n" {
		t.Fatalf("control: the file is %q, %v", before, err)
	}
	for _, tier := range []tool.Tier{tool.ReadOnly, tool.SideEffecting} {
		if failed := w.split.try(t, tier, "ada", attemptArgs{Kind: "descriptors", Path: path}); !strings.Contains(failed, "no descriptor is") {
			t.Errorf("%v: the attempt = %q, want no such descriptor", tier, failed)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file is %q, %v", after, err)
	}
}

// TestReaderWithNetwork: a reader that keeps the network reaches it and changes no file.
func TestReaderWithNetwork(t *testing.T) {
	t.Parallel()
	ws := openDir(t)
	k := keepUnder(t, openDir(t), workspace.Dirs{Shared: ws}, Plugin{
		Name: "calm", Path: program(t, "calm"), Limits: sandbox.DefaultLimits(), SplitTiers: true, ReaderNetwork: true,
		Confinement: sandbox.Confinement{Workspace: sandbox.WriteWorkspace, Network: sandbox.NetworkHost},
	})
	args, reached := onSocket("tcp", "127.0.0.1:0")(t, "network")
	if failed := k.try(t, tool.ReadOnly, "ada", args); failed != "" || !reached() {
		t.Errorf("the reader does not reach its network: %s", failed)
	}
	for _, kind := range []string{"append", "chmod", "remove"} {
		args, changed := twins{}.onFile(ws, kind)(t, kind)
		if failed := k.try(t, tool.ReadOnly, "ada", args); failed == "" || changed() {
			t.Errorf("the reader did %+v", args)
		}
	}
}

// TestReaderSeesNothingForbidden: forbidden paths are hidden from both processes. The control is
// another file.
func TestReaderSeesNothingForbidden(t *testing.T) {
	t.Parallel()
	ws := openDir(t)
	for _, name := range []string{"secret", "public"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := split(t, Shared)
	p.Forbidden = []string{filepath.Join(ws, "secret")}
	k := keepUnder(t, openDir(t), workspace.Dirs{Shared: ws}, p)
	for _, tier := range []tool.Tier{tool.ReadOnly, tool.SideEffecting} {
		if failed := k.try(t, tier, "ada", attemptArgs{Kind: "read", Path: filepath.Join(ws, "public")}); failed != "" {
			t.Errorf("control: a call of tier %v does not read the other file: %s", tier, failed)
		}
		if failed := k.try(t, tier, "ada", attemptArgs{Kind: "read", Path: filepath.Join(ws, "secret")}); failed == "" {
			t.Errorf("a call of tier %v reads a forbidden file", tier)
		}
	}
}
