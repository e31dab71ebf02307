package supervisor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCallOfAnotherProgramIsNotSent replaces a plugin's program between the check of a call,
// which has a digest, and its start.
func TestCallOfAnotherProgramIsNotSent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, p *Plugin, settings *string)
	}{
		{"another binary", func(t *testing.T, p *Plugin, _ *string) {
			t.Helper()
			rebuild(t, p.Path)
		}},
		{"other settings", func(_ *testing.T, _ *Plugin, settings *string) { *settings = `{"list":"more"}` }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings := `{}`
			p := Plugin{
				Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(),
				Settings: func([]byte) ([]byte, error) { return []byte(settings), nil },
			}
			k := keepPlugins(t, p)
			call := func(digest, mark string) (bool, error) {
				_, sent, err := k.Run(t.Context(), "calm", digest, tool.Call{ID: "tc_1", Tool: "log", Arguments: []byte(mark + "\n")}, tool.Sink{})
				return sent, err
			}
			if err := k.Restart(t.Context(), "calm"); err != nil {
				t.Fatal(err)
			}
			before := k.digest("calm")
			if sent, err := call(before, "first"); err != nil || !sent {
				t.Fatalf("Run() = sent %v, %v, want success", sent, err)
			}
			k.log.await(t, "first")

			tt.change(t, &p, &settings)
			if _, err := k.call(t, "calm", "exit", `{}`); err == nil {
				t.Fatal("Run() = nil, want a crash")
			}
			k.forgive("calm")
			sent, err := call(before, "second")
			wantUnavailable(t, err, "has changed since the call was checked", true)
			if sent {
				t.Error("Run() = sent, want not")
			}
			after := k.digest("calm")
			if after == before {
				t.Error("the same digest was published again")
			}
			if sent, err := call(after, "third"); err != nil || !sent {
				t.Errorf("Run() = sent %v, %v with the new digest, want success", sent, err)
			}
			k.log.await(t, "third")
			if strings.Contains(k.log.String(), "second") {
				t.Error("the plugin has seen the call")
			}
		})
	}
}

// rebuild replaces a program by one with the same behavior.
func rebuild(t *testing.T, path string) {
	t.Helper()
	build, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := testprogram.Write(path+"~", bytes.NewReader(append(build, "another build"...))); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func TestCallThatCannotBeSent(t *testing.T) {
	k := keep(t, "calm")
	for _, tt := range []struct {
		name string
		call tool.Call
		code tool.Code
	}{
		{"a tool", tool.Call{Tool: "\xff"}, tool.Internal},
		{"a user", tool.Call{Tool: "echo", Context: tool.Context{User: "\xff"}}, tool.Internal},
		{"a root", tool.Call{Tool: "echo", Context: tool.Context{Roots: []string{"/", "/\xff"}}}, tool.Internal},
		{"arguments above the bound", tool.Call{Tool: "echo", Arguments: make([]byte, 65<<20)}, tool.ResourceExhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, sent, err := k.Run(t.Context(), "calm", "", tt.call, tool.Sink{})
			if sent || tool.AsError(err).Code != tt.code {
				t.Errorf("Run() = sent %v, %v (%v), want not sent, %s", sent, err, errors.Unwrap(err), tt.code)
			}
		})
	}
	client := tool.Call{Tool: "echo", Arguments: []byte(`{}`), Context: tool.Context{Client: "a\xffb"}}
	if _, sent, err := k.Run(t.Context(), "calm", "", client, tool.Sink{}); err != nil || !sent {
		t.Errorf("Run() = sent %v, %v for a client's stray byte, want success", sent, err)
	}
}

// TestAnswersTakeLittleMemory lets a plugin send what takes far more memory
// than its size, if objects are made of it.
func TestAnswersTakeLittleMemory(t *testing.T) {
	const bound = 200 << 20
	limits := sandbox.DefaultLimits()
	limits.Memory = 0
	for _, name := range []string{"many_parts", "long_metadata", "long_structured"} {
		t.Run(name, func(t *testing.T) {
			k := keepPlugins(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: limits})
			k.mustCall(t, "calm", "echo")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := k.call(t, "calm", name, `{}`); tool.AsError(err).Code != tool.OutputInvalid {
				t.Errorf("Run() = %v, want output_invalid", err)
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > bound {
				t.Errorf("the answer took %v of memory, want at most %v", tool.ByteSize(got), tool.ByteSize(bound))
			}
		})
	}
}

func TestAnswersAreBoundedByTheBudget(t *testing.T) {
	limits := sandbox.DefaultLimits()
	limits.Memory = 0
	k := keepPlugins(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: limits})
	for _, tt := range []struct {
		text int
		want string // in the message; "" for a result
	}{
		{15 << 20, ""},
		{17 << 20, "is larger than 16MiB"},
	} {
		result, _, err := k.Run(t.Context(), "calm", "", tool.Call{
			ID: "tc_1", Tool: "text", Arguments: []byte(strconv.Itoa(tt.text)), Context: tool.Context{MaxOutput: 16 * tool.KiB},
		}, tool.Sink{})
		if tt.want == "" && (err != nil || len(result.Text()) != tt.text) {
			t.Errorf("%d bytes: Run() = %d bytes, %v, want success", tt.text, len(result.Text()), err)
		}
		if tt.want != "" && (err == nil || tool.AsError(err).Code != tool.ResourceExhausted || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d bytes: Run() = %v, want resource_exhausted, %q", tt.text, err, tt.want)
		}
	}
}

// cancelInside makes a call and cancels it once it is inside the plugin.
func (k *kept) cancelInside(t *testing.T, plugin, name, arguments string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, sent, err := k.Run(ctx, plugin, "", tool.Call{ID: "tc_1", Tool: name, Arguments: []byte(arguments)},
		tool.Sink{Chunk: func(tool.Chunk) { cancel() }})
	if err == nil || tool.AsError(err).Code != tool.Canceled || !sent {
		t.Fatalf("Run() = sent %v, %v (%v), want sent and canceled", sent, err, errors.Unwrap(err))
	}
}

// TestCallThatDoesNotStop gives up a call that the plugin does not stop, while another call
// runs.
func TestCallThatDoesNotStop(t *testing.T) {
	k := keep(t, "draining")
	k.timing.obey, k.timing.finish = time.Millisecond, 50*time.Millisecond
	file := filepath.Join(k.workspace, "go on")
	inside := make(chan struct{})
	beside := make(chan error, 1)
	go func() { // ends with the call
		_, _, err := k.Run(t.Context(), "draining", "", tool.Call{ID: "tc_2", Tool: "wait_file", Arguments: strconv.AppendQuote(nil, file)},
			tool.Sink{Chunk: func(tool.Chunk) { close(inside) }})
		beside <- err
	}()
	<-inside
	first := k.live("draining")
	k.cancelInside(t, "draining", "ignore", `{}`)
	eventually(t, "the process gets no new calls", func() bool { return k.live("draining") != first })
	if pid := k.mustCall(t, "draining", "pid"); pid == strconv.Itoa(first.proc.PID()) {
		t.Errorf("process %s takes another call", pid)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-beside; err != nil {
		t.Errorf("the other call: Run() = %v, want success", err)
	}
	<-first.ended
	if want := "did not stop a call when it was told to"; first.crash == nil || first.crash.Cause != want {
		t.Errorf("the crash is %+v, want cause %q", first.crash, want)
	}
	if s := k.state(t, "draining"); s.Phase != Ready || s.Crashes != 1 {
		t.Errorf("state is %+v, want ready, by the new process, and a crash", s)
	}
}

func TestCallThatStopsCostsNoCrash(t *testing.T) {
	k := keep(t, "draining", "plain")
	k.timing.obey, k.timing.finish = time.Millisecond, time.Minute // a busy machine is no crash
	for _, plugin := range []string{"draining", "plain"} {         // one that can report it, and one that cannot
		k.mustCall(t, plugin, "echo")
		first := k.live(plugin)
		k.cancelInside(t, plugin, "block", `{"Calls":1}`)
		<-first.ended
		if s := k.state(t, plugin); s.Crashes != 0 || s.Phase != Stopped {
			t.Errorf("state is %+v, want stopped without a crash", s)
		}
		k.mustCall(t, plugin, "echo")
	}
}

// TestCallThatStopsCostsNothing gives up a call of a plugin that can tell when
// it has ended.
func TestCallThatStopsCostsNothing(t *testing.T) {
	k := keep(t, "telling")
	k.timing.obey = time.Minute // a plugin that is asked in vain would hold up the test
	k.mustCall(t, "telling", "echo")
	first := k.live("telling")
	k.cancelInside(t, "telling", "block", `{"Calls":1}`)
	k.mustCall(t, "telling", "echo")
	if live := k.live("telling"); live != first {
		t.Error("the process was replaced")
	}

	k.timing.obey, k.timing.finish = 50*time.Millisecond, 50*time.Millisecond
	k.cancelInside(t, "telling", "ignore", `{}`)
	<-first.ended
	if want := "did not stop a call when it was told to"; first.crash == nil || first.crash.Cause != want {
		t.Errorf("the crash is %+v, want cause %q", first.crash, want)
	}
}

// TestIdlePluginStopsDespiteProbes asks the plugin whether it is well more
// often than it takes to be idle.
func TestIdlePluginStopsDespiteProbes(t *testing.T) {
	k := keepPlugins(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, IdleTimeout: 100 * time.Millisecond})
	k.timing.quiet = 10 * time.Millisecond
	k.mustCall(t, "calm", "echo")
	k.await(t, "calm", Stopped)
}

func TestCallsWaitForTheChannel(t *testing.T) {
	k := keep(t, "slowconnect")
	if got := k.mustCall(t, "slowconnect", "attached"); got != "true" {
		t.Error("the call came before the plugin could ask the host")
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	k := keepPlugins(t, Plugin{
		Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(),
		Settings: func([]byte) ([]byte, error) { return []byte(`{"key":"` + secret + `"}`), nil },
	})
	_, err := k.call(t, "calm", "panic", secret)
	if tool.AsError(err).Code != tool.PluginCrashed {
		t.Fatalf("Run() = %v, want a crash", err)
	}
	crash := k.state(t, "calm").LastCrash
	if !strings.Contains(crash.Stderr, "[redacted]") || !strings.Contains(crash.Detail, "[redacted]") {
		t.Errorf("the crash is %+v, want the secret redacted", crash)
	}
	k.forgive("calm")
	_, failed := k.call(t, "calm", "status", secret)
	for what, text := range map[string]string{"log": k.log.String(), "stderr": crash.Stderr, "detail": crash.Detail, "cause": errors.Unwrap(failed).Error()} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is in the %s: %s", what, text)
		}
	}

	k = keepPlugins(t, Plugin{
		Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(),
		Settings: func([]byte) ([]byte, error) { return []byte(`{"wrong":"` + secret + `"}`), nil },
	})
	_, err = k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "its settings are wrong", false)
	if s := k.state(t, "calm"); !strings.Contains(s.Refused, "[redacted]") || strings.Contains(s.Refused+k.log.String(), secret) {
		t.Errorf("refused %q, want the secret redacted", s.Refused)
	}
}

// TestTwoGenerationsAreEnough gives up calls in each process that takes any, while the first
// process still finishes a call.
func TestTwoGenerationsAreEnough(t *testing.T) {
	k := keep(t, "plain")
	k.timing.obey = time.Millisecond
	file := filepath.Join(k.workspace, "go on")
	inside := make(chan struct{})
	beside := make(chan error, 1)
	go func() { // ends with the call
		_, _, err := k.Run(t.Context(), "plain", "", tool.Call{ID: "tc_2", Tool: "wait_file", Arguments: strconv.AppendQuote(nil, file)},
			tool.Sink{Chunk: func(tool.Chunk) { close(inside) }})
		beside <- err
	}()
	<-inside
	first := k.live("plain")
	k.cancelInside(t, "plain", "ignore", `{}`)
	eventually(t, "the process gets no new calls", func() bool { return k.live("plain") != first })
	k.mustCall(t, "plain", "echo")
	second := k.live("plain")
	for range 20 {
		k.cancelInside(t, "plain", "ignore", `{}`)
		if live := k.live("plain"); live != second {
			t.Fatal("there is a third process")
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-beside; err != nil {
		t.Errorf("the call beside: Run() = %v, want success", err)
	}
	<-first.ended
	<-second.ended // it is its turn
	if s := k.state(t, "plain"); s.Crashes != 0 || s.Phase != Stopped {
		t.Errorf("state is %+v, want stopped without a crash", s)
	}
}
