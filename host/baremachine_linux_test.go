package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// bareVariable is set in the process on the bare machine. It holds the root directory.
const bareVariable = "TOOLHOST_TEST_ROOT"

// TestBareMachine installs the program and its plugins on a machine that has nothing else: no
// shell, no git, no Go, no library. An ordinary user writes a configuration, connects a client and
// serves, and the client's own file leads to a tool in the strict sandbox.
func TestBareMachine(t *testing.T) {
	if root := os.Getenv(bareVariable); root != "" {
		onBareMachine(t, root)
		return
	}
	t.Parallel()
	root := bareRoot(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestBareMachine$")
	cmd.Env = []string{bareVariable + "=" + root, binVariable + "=" + bin, "HOME=/home/ada", "USER=ada", "PATH=/usr/local/bin", "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// bareRoot makes the root directory, as `make install` fills it.
func bareRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"usr/local/bin", "usr/local/lib/toolhost/plugins", "home/ada/project", "etc", "proc", "dev", "tmp", "old"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names, err := shippedPlugins()
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string]string{"toolhost": "usr/local/bin/toolhost"}
	for _, name := range names {
		installed["plugins/"+name] = "usr/local/lib/toolhost/plugins/" + name
	}
	for from, to := range installed {
		if err := os.Link(filepath.Join(bin, from), filepath.Join(root, to)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"etc/passwd": "ada:x:1000:1000::/home/ada:/bin/sh\n", "home/ada/project/README.md": "# My project\n",
		"dev/null": "", "dev/zero": "", "dev/random": "", "dev/urandom": "",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// onBareMachine is the test in the process that has the machine to itself.
func onBareMachine(t *testing.T, root string) {
	t.Helper()
	runtime.LockOSThread() // its children have no capabilities either
	if err := enterBare(root); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob("/*bin"); err != nil || len(found) > 0 {
		t.Fatalf("the machine has %v, %v; want no program of a system", found, err)
	}
	run := func(want string, args ...string) string {
		t.Helper()
		out, err := bareCommand(t.Context(), "toolhost", args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("toolhost %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
		}
		return string(out)
	}
	run("are disabled: bash is not installed", "init", "--yes")
	run("wrote /home/ada/.claude.json", "connect", "claude-code", "--yes")

	serving := bareCommand(t.Context(), "toolhost", "serve")
	ready := &bytes.Buffer{}
	serving.Stderr = os.Stderr
	out, err := serving.StdoutPipe()
	if err == nil {
		err = serving.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 4096)
	for !strings.Contains(ready.String(), "  tools    toolhost tools\n") {
		n, err := out.Read(part)
		ready.Write(part[:n])
		if err != nil {
			t.Fatalf("serve: %v\n%s", err, ready)
		}
	}
	if !strings.Contains(ready.String(), "  MCP      http://127.0.0.1:7780/mcp\n") {
		t.Errorf("serve prints\n%s", ready)
	}

	var claude struct {
		Projects map[string]struct {
			MCPServers map[string]struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
			} `json:"mcpServers"`
		} `json:"projects"`
	}
	if err := json.Unmarshal([]byte(readFile(t, "/home/ada/.claude.json")), &claude); err != nil {
		t.Fatal(err)
	}
	server := claude.Projects["/home/ada/project"].MCPServers["toolhost"]
	client := connectTo(t, bareCommand(t.Context(), server.Command, server.Args...), revisions[0], nil)
	if got := client.must(t, "read_file", map[string]any{"path": "README.md"}); got != "# My project\n" {
		t.Errorf("read_file over the client's file = %q", got)
	}
	if text := run("mounts:minimal", "plugins", "inspect", "fs"); !strings.Contains(text, "landlock") {
		t.Errorf("the sandbox of fs is\n%s", text)
	}
	if err := serving.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := serving.Wait(); err != nil {
		t.Errorf("serve ends with %v", err)
	}
}

// bareCommand is a command of the user in the project.
func bareCommand(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/home/ada/project"
	cmd.Env = []string{"HOME=/home/ada", "USER=ada", "PATH=/usr/local/bin"}
	return cmd
}

// enterBare makes root the only file system that this process sees, and gives up the capabilities
// for that.
func enterBare(root string) error {
	type step struct {
		what string
		do   func() error
	}
	steps := []step{
		{"start loopback", loopbackUp},
		{"keep mounts private", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"mount the root", func() error { return unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, "") }},
	}
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"} {
		steps = append(steps, step{"mount " + device, func() error { return unix.Mount(device, root+device, "", unix.MS_BIND, "") }})
	}
	steps = append(steps, []step{
		{"mount proc", func() error { return unix.Mount("proc", root+"/proc", "proc", 0, "") }},
		{"enter the root", func() error { return unix.PivotRoot(root, root+"/old") }},
		{"change to it", func() error { return unix.Chdir("/") }},
		{"leave the old root", func() error { return unix.Unmount("/old", unix.MNT_DETACH) }},
		{"drop capabilities", func() error { return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) }},
	}...)
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// loopbackUp starts the loopback interface of this network namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
