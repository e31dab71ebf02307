package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// getaways are commands that start a process which gets away from a plain kill,
// and go on themselves, so that two sleep.
func (m mark) getaways() map[string]string {
	sleep := m.sleeper("x")
	return map[string]string{
		"background child": sleep + " & exec " + sleep,
		"setsid":           "setsid " + sleep + " & exec " + sleep,
		"double fork":      "(setsid bash -c '(exec -a " + string(m) + "-x sleep 1000 &)' &); exec " + sleep,
		"ignored SIGTERM":  "trap '' TERM INT HUP; " + sleep + " & exec " + sleep,
		"stops itself":     "(exec -a " + string(m) + "-x bash -c 'kill -STOP $$; sleep 1000') & exec " + sleep,
		"holds the pipe":   "(" + sleep + " >&1 2>&1 &); exec " + sleep,
	}
}

// Nothing of a command survives, whatever it has done and whatever ends it.
func TestNothingSurvives(t *testing.T) {
	ends := map[string]func(*testing.T, *sdktest.Plugin, context.CancelFunc){
		"time-out":      func(*testing.T, *sdktest.Plugin, context.CancelFunc) {}, // of itself
		"cancel":        func(_ *testing.T, _ *sdktest.Plugin, cancel context.CancelFunc) { cancel() },
		"plugin stop":   func(_ *testing.T, p *sdktest.Plugin, _ context.CancelFunc) { p.Close() },
		"plugin killed": func(t *testing.T, p *sdktest.Plugin, _ context.CancelFunc) { t.Helper(); killPlugin(t, p) },
	}
	for _, way := range []struct{ backend, tool string }{{backendHost, "shell_exec"}, {backendSession, "shell_exec"}, {backendHost, "shell_background"}} {
		for end, stop := range ends {
			if way.tool == "shell_background" && end == "cancel" {
				end, stop = "kill", nil
			}
			t.Run(way.backend+" "+way.tool+"/"+end, func(t *testing.T) {
				t.Parallel()
				var all sync.WaitGroup // they wait more than they work
				defer all.Wait()
				for name := range newMark().getaways() {
					all.Go(func() {
						t.Run(name, func(t *testing.T) { testNothingSurvives(t, way.backend, way.tool, name, end, stop) })
					})
				}
			})
		}
	}
}

// testNothingSurvives ends a command that has started something to get away.
func testNothingSurvives(t *testing.T, backend, toolName, getaway, end string, stop func(*testing.T, *sdktest.Plugin, context.CancelFunc)) {
	t.Helper()
	m := newMark()
	options := shellOptions(map[string]any{"backend": backend, "job_time": jobTime(end)})
	p := sdktest.StartBinary(t, os.Args[0], options)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	args := map[string]any{"command": m.getaways()[getaway]}
	if end == "time-out" && toolName == "shell_exec" {
		args["timeout"] = 1
	}
	done := make(chan tool.Result, 1)
	go func() { done <- p.Call(ctx, toolName, args) }() // ends with the call
	if end != "time-out" {
		m.await(t, "x", 2)
	}
	if stop == nil {
		job, _ := (<-done).Metadata["job"].(string)
		if got := p.Call(ctx, "process_kill", map[string]any{"job": job}); got.Error != nil {
			t.Error(got.Error)
		}
	} else {
		stop(t, p, cancel)
		got := <-done
		if end == "time-out" && toolName == "shell_exec" && (got.Error == nil || got.Error.Code != tool.Timeout) {
			t.Errorf("the call ends with %v, want timeout", got.Error)
		}
	}
	m.await(t, "x", 0)
}

// jobTime is how long a job may run: one that its time ends, as long as it takes
// to start.
func jobTime(end string) string {
	if end == "time-out" {
		return "1s"
	}
	return "1h"
}

// killPlugin kills the plugin's process as the system would.
func killPlugin(t *testing.T, p *sdktest.Plugin) {
	t.Helper()
	// The reaper of a command is the plugin's child.
	got := p.Run(t.Context(), tool.Call{Tool: "shell_exec", Arguments: asJSON(t, map[string]any{"command": "grep PPid: /proc/$PPID/status"}), Context: tool.Context{Session: "other"}}, tool.Sink{})
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(got.Text(), "PPid:")))
	if err != nil || pid <= 1 {
		t.Fatalf("the plugin's process id is %q (%v)", got.Text(), got.Error)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// The control run: killing the process group, as most programs do, leaves
// something of those that have left it.
func TestControlSomethingSurvives(t *testing.T) {
	for name, survivors := range map[string]int{"background child": 0, "setsid": 1, "double fork": 1, "ignored SIGTERM": 0} {
		t.Run(name, func(t *testing.T) {
			m := newMark()
			cmd := exec.Command("bash", "-c", m.getaways()[name])
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			m.await(t, "x", 2)
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			m.await(t, "x", survivors)
			for _, pid := range m.pids(t, "x") {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Error(err)
				}
			}
		})
	}
}

// What works for root alone would not do: the tests of this file again, as an
// ordinary user.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // this is one
	}
	t.Parallel()
	tests, seed := "^Test(NothingSurvives|ControlSomething", soak.Seed(t)
	for i, name := range []string{"Session", "Bad"} {
		if soak.Today(seed, i, 2) {
			tests += "|" + name
		}
	}
	asUser(t, 65534, tests+")", "TestNothingSurvives")
}

// asUser runs tests as an ordinary user, of which one that is named must pass.
func asUser(t *testing.T, user uint32, tests, one string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", tests, "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+one)) {
		t.Errorf("as user %d: %v\n%s", user, err, out)
	}
}
