package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// executing enables a plugin at a level of isolation and allows it to execute programs.
func executing(name, isolation, more string) string {
	return fmt.Sprintf(`
plugin %q {
  tier   = "side_effecting"
  claims = "trust"
  sandbox {
    isolation = %q
    filesystem {
      workspace = "ro"
      exec      = ["system"]
    }
  }
  %s
}
`, name, isolation, more)
}

// workingLevels returns the levels of isolation that work on this machine.
func workingLevels(t *testing.T) map[string]bool {
	t.Helper()
	stdout, stderr, code := cli(writeConfig(t, ""), "doctor", "--json")
	if code != 0 {
		t.Fatalf("toolhost doctor exits with %d: %s", code, stderr)
	}
	var machine diagnosis
	decode(t, stdout, &machine)
	works := map[string]bool{"auto": true}
	for _, level := range machine.Machine.Levels {
		works[level.Isolation.String()] = level.Works
	}
	return works
}

// atEachLevel runs a test in a host for each level of isolation that works on this machine. At
// the others, the host must refuse the plugin.
func atEachLevel(t *testing.T, plugin, tool, more string, test func(t *testing.T, h *host, isolation string)) {
	t.Helper()
	works := workingLevels(t)
	for _, isolation := range []string{"off", "basic", "isolated", "strict", "auto"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			h := serve(t, writeConfig(t, listening+executing(plugin, isolation, more)))
			if works[isolation] {
				test(t, h, isolation)
				return
			}
			if o := h.post(t, tool, map[string]any{}); o.Error == nil || !strings.Contains(o.Error.Message, "requires") {
				t.Errorf("%s does not work here, and the call = %s", isolation, asJSON(o))
			}
		})
	}
}

// inForce lists layers of each level. The other levels lack the last one.
var inForce = map[string][]string{
	"off":      {"rlimits", "no_new_privs", "pdeathsig"},
	"basic":    {"rlimits", "no_new_privs", "pdeathsig", "landlock", "seccomp"},
	"isolated": {"rlimits", "no_new_privs", "pdeathsig", "landlock", "seccomp", "pidns", "proc", "mounts:ro"},
	"strict":   {"rlimits", "no_new_privs", "pdeathsig", "landlock", "seccomp", "pidns", "proc", "mounts:minimal"},
	"auto":     {"rlimits", "no_new_privs", "pdeathsig"},
}

// TestProgramsOfPlugins has the plugin of examples/disk run du.
func TestProgramsOfPlugins(t *testing.T) {
	atEachLevel(t, "disk", "disk_usage", "", runsDu)
}

func runsDu(t *testing.T, h *host, isolation string) {
	t.Helper()
	for _, dir := range []string{"kept/inner", "closed"} {
		if err := os.MkdirAll(filepath.Join(h.dir, "ws", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.write(t, "kept/inner/file", strings.Repeat("x", 100<<10))
	if err := os.Chmod(filepath.Join(h.dir, "ws", "closed"), 0); err != nil {
		t.Fatal(err)
	}
	type usage struct {
		Entries []struct {
			Path  string
			Bytes int64
		}
		Missing string
	}
	var got usage
	o := h.post(t, "disk_usage", map[string]any{"path": ".", "depth": 2})
	if o.Status != client.Success {
		t.Fatalf("disk_usage = %s\n%s", asJSON(o), h.said())
	}
	if err := json.Unmarshal(o.Result.Structured, &got); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range got.Entries {
		paths = append(paths, e.Path)
		if least := int64(100 << 10); e.Path != "closed" && e.Bytes < least {
			t.Errorf("%s takes %d bytes, want at least %d", e.Path, e.Bytes, least)
		}
	}
	if diff := cmp.Diff([]string{".", "kept", "kept/inner", "closed"}, paths); diff != "" {
		t.Errorf("disk_usage lists (-want +got):\n%s", diff)
	}
	// Root can read everything, unless it has no capabilities.
	all := isolation == "off" && os.Geteuid() == 0
	if refused := strings.HasSuffix(got.Missing, "'./closed': Permission denied"); refused == all {
		t.Errorf("what is missing: %q, want everything there: %t", got.Missing, all)
	}
	o = h.post(t, "disk_usage", map[string]any{"path": "gone"})
	if o.Error == nil || o.Error.Code != "NOT_FOUND" {
		t.Errorf("disk_usage of what is not there = %s", asJSON(o))
	}
	h.checkLayers(t, "disk", isolation)
}

// plugin returns the host's view of one of its plugins.
func (h *host) plugin(t *testing.T, name string) (p httpapi.Plugin) {
	t.Helper()
	decode(t, h.ok(t, "plugins", "inspect", name, "--json"), &p)
	return p
}

// checkLayers compares the layers in force for a plugin with its level.
func (h *host) checkLayers(t *testing.T, name, isolation string) {
	t.Helper()
	p := h.plugin(t, name)
	if p.Sandbox == nil || p.Isolation.String() != isolation {
		t.Fatalf("%s is %s, want a report at %s", name, asJSON(p), isolation)
	}
	has := func(layer string) bool {
		return slices.ContainsFunc(p.Sandbox.Layers, func(l string) bool { return strings.HasPrefix(l, layer) })
	}
	for _, layer := range inForce[isolation] {
		if !has(layer) {
			t.Errorf("at %s %q is not in force: %v", isolation, layer, p.Sandbox)
		}
	}
	for _, above := range []string{"landlock", "pidns", "mounts:ro", "mounts:minimal"} {
		if p.Isolation != sandbox.Auto && !slices.Contains(inForce[isolation], above) && has(above) {
			t.Errorf("at %s %q is in force: %v", isolation, above, p.Sandbox)
		}
	}
}

// unasked and hasty configure the tool that runs a command.
const (
	unasked = `tool "probe_command" { approval = "allow" }`
	hasty   = `tool "probe_command" {
    approval = "allow"
    timeout  = "3s"
  }`
)

// TestProgramsEndWithTheirCall has a command hang that has started others. All end when the
// call times out, and the plugin keeps running. The control is [TestProgramsWithoutProc].
func TestProgramsEndWithTheirCall(t *testing.T) {
	atEachLevel(t, "probe", "probe_process", hasty, endsWithItsCall)
}

func endsWithItsCall(t *testing.T, h *host, _ string) {
	t.Helper()
	h.must(t, 200, "POST", "/v1/calls", h.token, `{"tool":"probe_process"}`)
	before := h.plugin(t, "probe")
	mark, call := h.hang(t, "proc")
	if got := len(descendants(t, before.PID)); got < 5 {
		t.Fatalf("%d processes below the plugin, want the command's and its reaper", got)
	}
	if o := h.outcome(t, call); o.Error == nil || o.Error.Code != "TIMEOUT" {
		t.Errorf("the call = %s, want its time-out", asJSON(o))
	}
	eventually(t, "nothing is left of the command", func() bool {
		left := descendants(t, before.PID)
		// The next command's reaper waits for it.
		return len(withArgument(t, mark)) == 0 && (len(left) == 0 || len(left) == 1 && slices.Contains(withArgument(t, "toolhost-reaper"), left[0]))
	})
	if o := h.post(t, "probe_process", map[string]any{}); o.Status != client.Success || h.plugin(t, "probe").PID != before.PID {
		t.Errorf("after that a call = %s, and the plugin is process %d, want %d", asJSON(o), h.plugin(t, "probe").PID, before.PID)
	}
}

// TestProgramsWithoutProc is the control: if package os/exec runs the command, only the shell
// ends with its call. The sandbox ends the others with the plugin.
func TestProgramsWithoutProc(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+executing("probe", "auto", hasty)))
	mark, call := h.hang(t, "exec")
	if o := h.outcome(t, call); o.Error == nil || o.Error.Code != "TIMEOUT" {
		t.Errorf("the call = %s, want its time-out", asJSON(o))
	}
	eventually(t, "the shell is gone, and the three others live", func() bool { return len(withArgument(t, mark)) == 3 })
	h.stop()
	eventually(t, "nothing is left", func() bool { return len(withArgument(t, mark)) == 0 })
}

// TestProgramsEndWithTheHost kills the host while a command hangs.
func TestProgramsEndWithTheHost(t *testing.T) {
	atEachLevel(t, "probe", "probe_process", unasked, endsWithTheHost)
}

func endsWithTheHost(t *testing.T, h *host, _ string) {
	t.Helper()
	mark, _ := h.hang(t, "proc")
	all := descendants(t, h.cmd.Process.Pid)
	if len(all) < 6 {
		t.Fatalf("%d processes below the host, want the plugin, the command's and its reaper", len(all))
	}
	h.kill()
	eventually(t, "nothing is left", func() bool {
		return len(withArgument(t, mark)) == 0 && !slices.ContainsFunc(all, func(pid int) bool { return !gone(pid) })
	})
}

// hang starts a call that hangs in a command of package by, and waits until the command has
// started the others. All have mark as an argument.
func (h *host) hang(t *testing.T, by string) (mark, call string) {
	t.Helper()
	mark = strconv.Itoa(1e6 + rand.IntN(1e8))
	o := h.post(t, "probe_command", map[string]any{"mark": mark, "by": by}, "Prefer", "respond-async")
	eventually(t, "the command has started the others", func() bool { return len(withArgument(t, mark)) == 4 })
	return mark, o.ToolCallID
}

// withArgument returns the processes that have an argument.
func withArgument(t *testing.T, argument string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, _ := os.ReadFile(f) // empty if the process has just ended
		if slices.Contains(strings.Split(string(text), "\x00"), argument) {
			pids = append(pids, pidOf(t, filepath.Base(filepath.Dir(f))))
		}
	}
	return pids
}

// descendants returns the descendants of a process.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	all := children(t, pid)
	for i := 0; i < len(all); i++ {
		all = append(all, children(t, all[i])...)
	}
	return all
}

// TestProgramsOfAnOrdinaryUser runs the tests in this file again, with hosts of an ordinary
// user.
func TestProgramsOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // this is an ordinary user
	}
	asOrdinaryUser(t, "^TestProgramsEndWith|^TestProgramsOfPlugins$|^TestForkBomb$", "TestProgramsEndWithTheHost/strict", "TestForkBomb")
}

// asOrdinaryUser runs tests with hosts of an ordinary user. They must pass, the named ones among
// them.
func asOrdinaryUser(t *testing.T, tests string, named ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run="+tests, "-test.parallel=5", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{binVariable + "=" + bin, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	for _, name := range named {
		if err == nil && !strings.Contains(string(out), "--- PASS: "+name) {
			err = fmt.Errorf("%s did not run", name)
		}
	}
	if err != nil {
		t.Errorf("as user 65534: %v\n%s", err, out)
	}
}
