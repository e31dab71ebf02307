package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestCallsThatFail(t *testing.T) {
	limits := sandbox.DefaultLimits()
	limits.OpenFiles, limits.FileSize = 128, 8*tool.MiB
	for _, tt := range []struct {
		tool string
		code tool.Code
		want string
	}{
		{"exit", tool.PluginCrashed, `the plugin "calm" exited with code 5`},
		{"panic", tool.PluginCrashed, `the plugin "calm" panicked`},
		{"allocate", tool.PluginCrashed, `the plugin "calm" exceeded its memory limit (512MiB)`},
		{"open_files", tool.PluginCrashed, `the plugin "calm" exceeded its limit of open files (128)`},
		{"large_file", tool.PluginCrashed, `the plugin "calm" exceeded its file size limit (8MiB)`},
		{"large", tool.ResourceExhausted, `the result of the plugin "calm" is larger than 64MiB`},
		{"many_parts", tool.OutputInvalid, "it sent a message of more than 20000 elements"},
		{"long_metadata", tool.OutputInvalid, "the metadata is larger than 64KiB"},
		{"long_structured", tool.OutputInvalid, "the structured result is larger than 4MiB"},
		{"two_results", tool.OutputInvalid, "it sent two results"},
		{"no_result", tool.OutputInvalid, "without a result"},
		{"bad_code", tool.OutputInvalid, `unknown code "oops"`},
		{"bad_text", tool.OutputInvalid, "content 0 is text that is not valid UTF-8"},
		{"bad_structured", tool.OutputInvalid, "the structured result is not valid UTF-8"},
		{"bad_kind", tool.OutputInvalid, "content 0 has the unknown kind 42"},
		{"status", tool.OutputInvalid, `answered with a protocol error (FailedPrecondition) instead of a result`},
		{"unavailable", tool.OutputInvalid, `answered with a protocol error (Unavailable)`},
		{"nonsense", tool.OutputInvalid, `answered with a protocol error (InvalidArgument)`},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			t.Parallel()
			limits := limits
			if tt.tool == "large" || strings.HasPrefix(tt.tool, "long_") {
				limits.Memory = 0
			}
			k := keepPlugins(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: limits})
			_, err := k.call(t, "calm", tt.tool, `{}`)
			var e *tool.Error
			if !errors.As(err, &e) || e.Code != tt.code || !strings.Contains(e.Message, tt.want) {
				t.Fatalf("Run() = %v (%v), want code %s, message %q", err, errors.Unwrap(err), tt.code, tt.want)
			}
			if strings.Contains(e.ModelText(), "/") || strings.Contains(e.ModelText(), "secret") {
				t.Errorf("the caller reads %q", e.ModelText())
			}
			if strings.Contains(tt.want, "protocol error") && !strings.Contains(k.log.String(), "protocol error instead of a result") {
				t.Error("the log does not have the error, which only the plugin's author can mend")
			}
			k.mustCall(t, "calm", "echo") // the plugin works, or works again
			crashed := tt.code == tool.PluginCrashed
			if s := k.state(t, "calm"); (s.Crashes == 1) != crashed || (s.LastCrash != nil) != crashed {
				t.Errorf("state is %+v, want a crash: %v", s, crashed)
			}
		})
	}
}

func TestFailureOfTheToolNamesTheLimit(t *testing.T) {
	k := keep(t, "calm")
	result, err := k.call(t, "calm", "tool_error", `{}`)
	if err != nil || result.Error == nil {
		t.Fatalf("Run() = %+v, %v; want an error in the result", result, err)
	}
	if got, want := result.Error.Hint, `the plugin "calm" met its limit of open files (256)`; got != want {
		t.Errorf("the hint is %q, want %q", got, want)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	k := keep(t, "stubborn")
	ctx, cancel := context.WithCancel(t.Context())
	inside := tool.Sink{Chunk: func(tool.Chunk) { cancel() }}
	_, sent, err := k.Run(ctx, "stubborn", "", tool.Call{ID: "tc_1", Tool: "block", Arguments: []byte(`{"Calls":1}`)}, inside)
	if e := tool.AsError(err); e.Code != tool.Canceled || !sent {
		t.Errorf("Run() = sent %v, %v (%v), want canceled and sent", sent, err, errors.Unwrap(err))
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _, err = k.Run(ctx, "stubborn", "", tool.Call{ID: "tc_2", Tool: "block", Arguments: []byte(`{"Calls":100}`)}, tool.Sink{})
	if e := tool.AsError(err); e.Code != tool.Timeout {
		t.Errorf("Run() = %v, want timeout", err)
	}
	k.mustCall(t, "stubborn", "echo")
}

// TestKill kills one of two plugins with 16 calls in each, proved to be inside
// by a barrier.
func TestKill(t *testing.T) {
	t.Parallel()
	const calls = 16
	k := keep(t, "stubborn", "calm")
	type end struct {
		plugin string
		sent   bool
		err    error
	}
	ends := make(chan end, 2*calls)
	inside := make(chan struct{}, calls)
	var running sync.WaitGroup
	for range calls {
		running.Go(func() {
			_, sent, err := k.Run(t.Context(), "stubborn", "", tool.Call{ID: "tc_1", Tool: "block", Arguments: fmt.Appendf(nil, `{"Calls":%d}`, calls)},
				tool.Sink{Chunk: func(tool.Chunk) { inside <- struct{}{} }})
			ends <- end{"stubborn", sent, err}
		})
	}
	for range calls - 1 { // the last one of the other plugin arrives after the kill
		running.Go(func() {
			_, sent, err := k.Run(t.Context(), "calm", "", tool.Call{ID: "tc_2", Tool: "block", Arguments: fmt.Appendf(nil, `{"Calls":%d}`, calls)}, tool.Sink{})
			ends <- end{"calm", sent, err}
		})
	}
	for range calls {
		<-inside
	}
	if err := syscall.Kill(k.state(t, "stubborn").PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range calls {
		e := <-ends
		var toolErr *tool.Error
		if e.plugin != "stubborn" || !errors.As(e.err, &toolErr) || toolErr.Code != tool.PluginCrashed || !e.sent {
			t.Errorf("%s: Run() = sent %v, %v, want plugin_crashed and sent", e.plugin, e.sent, e.err)
		}
		if toolErr != nil && !strings.Contains(toolErr.Message, "was killed from outside") {
			t.Errorf("the caller reads %q", toolErr.Message)
		}
	}
	if _, err := k.call(t, "calm", "block", fmt.Sprintf(`{"Calls":%d}`, calls)); err != nil {
		t.Errorf("the other plugin: Run() = %v", err)
	}
	running.Wait()
	for range calls - 1 {
		if e := <-ends; e.plugin != "calm" || e.err != nil {
			t.Errorf("%s: Run() = %v, want success", e.plugin, e.err)
		}
	}
	k.mustCall(t, "stubborn", "echo")
}

func TestBackoffAndBreaker(t *testing.T) {
	t.Parallel()
	// A program that changes may start again. One with a link of another test changes
	// with that link.
	k := keepPlugins(t, Plugin{Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()})
	for n := range defaultRestart().MaxCrashes {
		k.mustCall(t, "calm", "echo")
		_, err := k.call(t, "calm", "exit", `{}`)
		if tool.AsError(err).Code != tool.PluginCrashed {
			t.Fatalf("crash %d: Run() = %v", n+1, err)
		}
	}
	_, err := k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "is off: it crashed 5 times within 2m0s; the last time it exited with code 5", true)
	if e := tool.AsError(err); !strings.HasPrefix(e.Hint, "the call was not made; the first call after 30s starts the plugin again") || !strings.Contains(e.Hint, "toolhost plugins restart calm") {
		t.Errorf("the hint is %q, want when it is tried again and what to type", e.Hint)
	}
	if s := k.state(t, "calm"); s.Phase != Broken {
		t.Errorf("state is %v, want broken", s.Phase)
	}
	k.pauseEnds("calm")
	if s := k.state(t, "calm"); s.Phase != Stopped || !s.RetryAt.IsZero() {
		t.Errorf("after the pause the state is %v until %v, want stopped", s.Phase, s.RetryAt)
	}
	k.mustCall(t, "calm", "echo") // half-open: the call is the trial
	_, _ = k.call(t, "calm", "exit", `{}`)
	if s := k.state(t, "calm"); s.Phase != Broken || time.Until(s.RetryAt) < 50*time.Second {
		t.Errorf("after a crash of the trial the state is %v until %v, want broken for a minute", s.Phase, s.RetryAt)
	}
	_, err = k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "is off: it crashed again when it was started after a pause; the last time it exited with code 5", true)
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatalf("Restart() = %v", err)
	}
	k.mustCall(t, "calm", "echo")
}

// pauseEnds lets a plugin start again that has failed.
func (k *kept) pauseEnds(plugin string) {
	m := k.managers[plugin].base
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backoff.until = time.Now()
}

// TestCauseOfAStartWithoutAProcess tells a machine that is too slow from other failures of the host.
func TestCauseOfAStartWithoutAProcess(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("launch: %w", context.DeadlineExceeded): "could not be started in time: the machine may be overloaded",
		fmt.Errorf("launch: %w", syscall.EMFILE):           "could not be started: something is wrong on the host",
	} {
		if got := crashOf(err); got.Cause != want || got.During != BeforeStart || got.Detail != err.Error() {
			t.Errorf("crashOf(%v) = %+v, want %q", err, got, want)
		}
	}
}

// TestHostFailureIsNoCrash removes the directory in which the host creates a process's files:
// the plugin starts as soon as the directory is back.
func TestHostFailureIsNoCrash(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm")
	away := k.run.Path + ".away"
	if err := os.Rename(k.run.Path, away); err != nil {
		t.Fatal(err)
	}
	for range 2 * defaultRestart().MaxCrashes {
		_, err := k.call(t, "calm", "echo", `{}`)
		wantUnavailable(t, err, "could not be started: something is wrong on the host", true)
		k.pauseEnds("calm")
	}
	if s := k.state(t, "calm"); s.Phase != Stopped || s.Crashes != 0 {
		t.Errorf("state is %v with %d crashes, want stopped with none", s.Phase, s.Crashes)
	}
	if err := os.Rename(away, k.run.Path); err != nil {
		t.Fatal(err)
	}
	k.mustCall(t, "calm", "echo")
}

func TestCallDuringBackoffFailsAtOnce(t *testing.T) {
	k := keep(t, "calm")
	k.mustCall(t, "calm", "echo")
	m := k.managers["calm"].base
	m.mu.Lock()
	m.backoff.row = 20 // so that the wait is longer than the test
	m.mu.Unlock()
	_, _ = k.call(t, "calm", "exit", `{}`)
	m.mu.Lock()
	m.backoff.until = time.Now().Add(time.Hour)
	m.mu.Unlock()
	_, err := k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "crashed and is not started again yet: it exited with code 5", true)
	if e := tool.AsError(err); e.RetryAfter <= 59*time.Minute {
		t.Errorf("RetryAfter = %v, want nearly an hour", e.RetryAfter)
	}
	if s := k.state(t, "calm"); s.Phase != Backoff {
		t.Errorf("state is %v, want backoff", s.Phase)
	}
}

// TestDegradedPluginGetsNoCalls stops a plugin with SIGSTOP. It resumes the plugin after the
// probe that makes it degraded and before the probe that would end it.
func TestDegradedPluginGetsNoCalls(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm")
	k.timing.quiet, k.timing.probe, k.timing.again = 10*time.Millisecond, time.Second, 3*time.Second
	k.mustCall(t, "calm", "echo")
	pid := k.state(t, "calm").PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	k.await(t, "calm", Degraded)
	_, err := k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "does not answer", true)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	k.await(t, "calm", Ready)
	if got := k.mustCall(t, "calm", "pid"); got != strconv.Itoa(pid) {
		t.Errorf("process %s takes the call, want %d", got, pid)
	}
}

func TestWaitingCallsAreBounded(t *testing.T) {
	t.Parallel()
	k := keep(t, "silent") // its start takes as long as it may
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, maxWaiting+1)
	var calls sync.WaitGroup
	for range maxWaiting + 1 {
		calls.Go(func() {
			_, _, err := k.Run(ctx, "silent", "", tool.Call{ID: "tc_1", Tool: "echo", Arguments: []byte(`{}`)}, tool.Sink{})
			errs <- err
		})
	}
	wantUnavailable(t, <-errs, "is starting, and 256 calls already wait for it", true)
	cancel()
	calls.Wait()
	for range maxWaiting {
		if err := <-errs; tool.AsError(err).Code != tool.Canceled {
			t.Errorf("Run() = %v for a call that waited, want canceled", err)
		}
	}
}

func TestStoppedPluginIsEnded(t *testing.T) {
	t.Parallel()
	k := keep(t, "connected")
	k.timing.quiet, k.timing.again = 10*time.Millisecond, 10*time.Millisecond
	_, err := k.call(t, "connected", "stop", `{}`)
	var e *tool.Error
	if !errors.As(err, &e) || e.Code != tool.PluginCrashed || !strings.Contains(e.Message, "stopped answering") {
		t.Errorf("Run() = %v (%v), want that it stopped answering", err, errors.Unwrap(err))
	}
	k.mustCall(t, "connected", "echo")
}

func TestLeftChildrenDie(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm")
	pid, err := strconv.Atoi(k.mustCall(t, "calm", "fork"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.call(t, "calm", "exit", `{}`) // the child holds its pipes
	if e := tool.AsError(err); e.Code != tool.PluginCrashed {
		t.Errorf("Run() = %v", err)
	}
	if !gone(pid) {
		t.Errorf("process %d, left by the plugin, still runs", pid)
	}
}

// gone reports whether a process has ended, reaped or not.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

func TestIdlePluginStops(t *testing.T) {
	t.Parallel()
	k := keepPlugins(t, Plugin{Name: "connected", Path: program(t, "connected"), Confinement: plain, IdleTimeout: time.Millisecond})
	for range 3 {
		pid, err := strconv.Atoi(k.mustCall(t, "connected", "pid"))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the process has ended", func() bool { return gone(pid) })
	}
	if s := k.state(t, "connected"); s.Crashes != 0 || s.LastCrash != nil {
		t.Errorf("state is %+v, want no crash", s)
	}
	if !strings.Contains(k.log.String(), "draining") {
		t.Error("the plugin was not drained")
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TOOLHOST_TEST_SECRET", "hidden")
	t.Setenv("SUPERVISOR_TEST_PASSED", "seen")
	k := keepPlugins(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(), PassEnv: []string{"SUPERVISOR_TEST_PASSED", "PATH", "TOOLHOST_TEST_SECRET"}})
	env := k.mustCall(t, "calm", "environment")
	if strings.Contains(env, "hidden") || strings.Contains(env, "HOME=") {
		t.Errorf("the plugin sees more of the host's environment than it should:\n%s", env)
	}
	for _, want := range []string{"SUPERVISOR_TEST_PASSED=seen\n", "\nPATH=" + os.Getenv("PATH") + "\n", "LANG=C.UTF-8\n", "GOMEMLIMIT=375809632\n", "TMPDIR=", "PLUGIN_CLIENT_CERT="} {
		if !strings.Contains("\n"+env, want) {
			t.Errorf("the environment lacks %q:\n%s", want, env)
		}
	}
	if strings.Count(env, "PATH=") != 1 {
		t.Error("PATH is there twice")
	}
}

func TestConnect(t *testing.T) {
	t.Parallel()
	k := keep(t, "connected", "disconnecting")
	k.mustCall(t, "connected", "echo")
	k.log.await(t, "the host answered 7 permission_denied")
	// The channel closes when the process ends for any reason.
	k.mustCall(t, "disconnecting", "echo")
	if live := k.live("disconnecting"); live != nil {
		<-live.ended
	}
	if s := k.state(t, "disconnecting"); s.LastCrash == nil || s.LastCrash.Cause != "closed its connection to the host" {
		t.Errorf("the last crash is %+v, want a closed connection", s.LastCrash)
	}
}

// TestTimeOutDoesNotWaitForAProcess: a process that does not end although it was killed
// keeps its caller no longer than the call may take.
func TestTimeOutDoesNotWaitForAProcess(t *testing.T) {
	t.Parallel()
	m := keep(t, "calm").managers["calm"].base
	i := &instance{proc: &process.Process{}, ended: make(chan struct{})}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	err := m.processLost(ctx, i, request{sent: true}, errors.New("connection lost"))
	if got := tool.AsError(err); got.Code != tool.Timeout {
		t.Errorf("processLost() = %v, want that the time is over", got)
	}
}

// TestResident checks the memory of a plugin's processes, and of one that has none.
func TestResident(t *testing.T) {
	k := keep(t, "calm")
	if memory, known := k.Resident(); memory["calm"] != 0 || known != (runtime.GOOS == "linux") {
		t.Errorf("Resident() before the plugin starts = %v, %v", memory, known)
	}
	k.mustCall(t, "calm", "echo")
	if memory, known := k.Resident(); known && memory["calm"] < 1<<20 {
		t.Errorf("Resident() of a plugin that runs = %v, want more than 1 MiB", memory)
	}
}
