package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/store"
)

// taking starts a host beside another one, and returns when it says what it waits for. started
// receives the error of its start.
func taking(t *testing.T, config, says string) (h *host, started <-chan error) {
	t.Helper()
	h, ended := &host{config: config, dir: filepath.Dir(config)}, make(chan error, 1)
	go func() { ended <- h.start() }() // ends with the start, which the test waits for
	t.Cleanup(h.stop)
	eventually(t, "it says "+says, func() bool { return strings.Contains(h.said(), says) })
	return h, ended
}

// TestServeTakesOver repeatedly starts hosts that stay while a client's process is the host:
// that client and its guest continue at each one.
func TestServeTakesOver(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing+counting)
	cmd := toolhost(context.WithoutCancel(t.Context()), config, "mcp")
	cmd.Stderr = &bytes.Buffer{}
	own := connectTo(t, cmd, revisions[1], nil)
	tools := func(s *session) string {
		t.Helper()
		list, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return asJSON(list.Tools)
	}
	listed, last := tools(own), own.must(t, "probe_process", nil)
	guest, _, _ := relayed(t, config, revisions[0])
	for try := range 5 {
		h := serve(t, config)
		if want := fmt.Sprintf("taking over from process %d (toolhost mcp)...\n", cmd.Process.Pid); try == 0 && !strings.Contains(h.said(), want) {
			t.Errorf("it says %q, want %q", h.said(), want)
		}
		now := h.post(t, "probe_process", nil).Result.Content
		if now == last {
			t.Errorf("the plugin is process %s as before: it is the same host, and the test proves nothing", now)
		}
		for name, s := range map[string]*session{"own client": own, "guest": guest} {
			if got := s.must(t, "probe_process", nil); got != now {
				t.Errorf("the %s sees the plugin as process %s, want %s of the new host", name, got, now)
			}
			if got := tools(s); got != listed {
				t.Errorf("the %s has the tools\n%s\nwant\n%s", name, got, listed)
			}
		}
		h.stop()
		if last = own.must(t, "probe_process", nil); last == now {
			t.Errorf("the plugin is process %s as before: the host that stays has not ended", last)
		}
	}
	for name, s := range map[string]*session{"own client": own, "guest": guest} {
		if err := s.Close(); err != nil {
			t.Errorf("the process of the %s does not end cleanly: %v", name, err)
		}
	}
}

// TestServeTakesOverUnderACall starts a host that stays during a call of the client whose
// process is the host.
func TestServeTakesOverUnderACall(t *testing.T) {
	for name, tt := range map[string]struct {
		grace, want string
		args        map[string]any
	}{
		"it ends in time": {"10m", ": counted a", map[string]any{"note": "a", "until": "go"}},
		"it does not":     {"1s", "unknown_outcome: ", map[string]any{"note": "a", "hold": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := writeConfig(t, strings.Replace(listening, `"1s"`, `"`+tt.grace+`"`, 1)+writing+counting)
			fifo := filepath.Join(filepath.Dir(config), "ws", "go")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			own := connect(t, config, revisions[1], nil)
			ended := make(chan string, 1)
			go func() { ended <- tallies(t, own)(tt.args) }() // ends with the call
			eventually(t, "the call has begun", func() bool { return len((&host{dir: filepath.Dir(config)}).counted()) == 1 })
			h, started := taking(t, config, "taking over from process")
			if tt.args["until"] != nil {
				if err := os.WriteFile(fifo, []byte("go"), 0); err != nil { // returns once the call has read it
					t.Fatal(err)
				}
			}
			if got := <-ended; !strings.HasPrefix(got, tt.want) {
				t.Errorf("the call ends with %q, want %q", got, tt.want)
			}
			if err := <-started; err != nil {
				t.Fatal(err)
			}
			if got, want := own.must(t, "probe_process", nil), h.post(t, "probe_process", nil).Result.Content; got != want {
				t.Errorf("the client sees the plugin as process %s, want %s of the new host", got, want)
			}
			if n := len(h.counted()); n != 1 {
				t.Errorf("%d calls ran, want 1: %v", n, h.counted())
			}
		})
	}
}

// TestServeAfterACommand starts a host that stays while a command is the host: the command
// first ends with its result.
func TestServeAfterACommand(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing+counting)
	fifo := filepath.Join(filepath.Dir(config), "ws", "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := toolhost(t.Context(), config, "call", "probe_tally", "note=a", "until=go")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call has begun", func() bool { return len((&host{dir: filepath.Dir(config)}).counted()) == 1 })
	h, started := taking(t, config, fmt.Sprintf("waiting for process %d, a command that is the host", cmd.Process.Pid))
	if err := os.WriteFile(fifo, []byte("go"), 0); err != nil { // returns once the call has read it
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "counted a") {
		t.Errorf("the command ends with %v and prints %q, want its result", err, &out)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if n := len(h.counted()); n != 1 {
		t.Errorf("%d calls ran, want 1: %v", n, h.counted())
	}
}

// TestTwoServeTakeOver starts two hosts that stay at the same time while a client's process is
// the host: one takes over, the other reports that.
func TestTwoServeTakeOver(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing+counting)
	own := connect(t, config, revisions[1], nil)
	own.must(t, "probe_process", nil)
	type attempt struct {
		h   *host
		err error
	}
	attempts := make(chan attempt)
	for range 2 {
		h := &host{config: config, dir: t.TempDir()}
		t.Cleanup(h.stop)
		go func() { attempts <- attempt{h, h.start()} }() // ends with the start; awaited below
	}
	first, second := <-attempts, <-attempts
	if first.err != nil {
		first, second = second, first
	}
	if first.err != nil || second.err == nil {
		t.Fatalf("the two end with %v and %v, want one that serves", first.err, second.err)
	}
	if want := fmt.Sprintf("is used by process %d", first.h.cmd.Process.Pid); !strings.Contains(second.err.Error(), want) {
		t.Errorf("the other says %q, want %q", second.err, want)
	}
	if got, want := own.must(t, "probe_process", nil), first.h.post(t, "probe_process", nil).Result.Content; got != want {
		t.Errorf("the client sees the plugin as process %s, want %s of the new host", got, want)
	}
}

// TestHostDiesWhileItHandsOver kills a client's process that is the host, during a call that
// keeps it from handing over.
func TestHostDiesWhileItHandsOver(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, strings.Replace(listening, `"1s"`, `"10m"`, 1)+writing+counting)
	cmd := toolhost(context.WithoutCancel(t.Context()), config, "mcp")
	own := connectTo(t, cmd, revisions[1], nil)
	ended := make(chan error, 1)
	go func() { // ends with the host
		_, err := own.CallTool(t.Context(), &mcp.CallToolParams{Name: "probe_tally", Arguments: map[string]any{"note": "a", "hold": true}})
		ended <- err
	}()
	eventually(t, "the call has begun", func() bool { return len((&host{dir: filepath.Dir(config)}).counted()) == 1 })
	h, started := taking(t, config, "taking over from process")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the call of the client that was killed has an answer")
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	h.must(t, http.StatusOK, "GET", "/readyz", h.token, "")
}

// TestServeBesideAnOlderHost starts a host beside an older one that cannot hand over.
func TestServeBesideAnOlderHost(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing)
	stateDir := filepath.Join(filepath.Dir(config), "state")
	lock, err := store.Lock(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := auth.EnsureKey(stateDir, auth.ApproverKey); err != nil {
		t.Fatal(err)
	}
	listener, err := auth.ListenControl(t.Context(), stateDir)
	if err != nil {
		t.Fatal(err)
	}
	older := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]string{"detail": "there is no /v1/handover"}) // only the status matters
	})}
	served := make(chan error, 1)
	go func() { served <- older.Serve(listener) }() // ends with Close
	_, stderr, code := cli(config, "serve")
	if want := fmt.Sprintf("is used by process %d", os.Getpid()); code != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, "taking over") {
		t.Errorf("serve exits with %d and says %q, want %q alone", code, stderr, want)
	}
	if err := older.Close(); err != nil {
		t.Error(err)
	}
	<-served
}
