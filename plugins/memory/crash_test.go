package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	crashCallers = 8
	// crashCalls is how many acknowledged calls a round has before the process is
	// killed, at least.
	crashCalls = 180
	// crashKeys are the notes of each caller, which are changed over and over.
	crashKeys = 12
)

// A ledger is one caller's knowledge of its notes.
type ledger struct {
	// acknowledged is the text of each note, "" for a deleted one.
	acknowledged map[string]string
	// open is the request that was not answered.
	key, open string
}

// crashText is a note of the crash test: its length and every part of it tell its
// number, so that a torn one is found out.
func crashText(caller, n int) string {
	return strings.Repeat(fmt.Sprintf("caller%d change%d. ", caller, n), 1+n%60)
}

// TestCrash kills the plugin while callers save, change and delete notes. Afterwards
// acknowledged changes exist as a whole; others exist as a whole or not at all.
func TestCrash(t *testing.T) {
	t.Parallel() // it mostly waits for processes
	dir := t.TempDir()
	ledgers := make([]*ledger, crashCallers)
	for i := range ledgers {
		ledgers[i] = &ledger{acknowledged: map[string]string{}}
	}
	var all atomic.Int64
	change := 0
	rounds := soak.Rounds(12, 60)
	for round := range rounds {
		p := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
			Env: []string{"MEMORY_AS_PLUGIN=1", "MEMORY_PID_FILE=" + filepath.Join(dir, "pid")}, Context: tool.Context{UserDir: dir},
		})
		for i, l := range ledgers {
			checkLedger(t, p, i, l)
		}
		if t.Failed() {
			t.Fatalf("in round %d, after %d acknowledged calls", round, all.Load())
		}
		pid := readPID(t, filepath.Join(dir, "pid"))
		var done atomic.Int64
		moment := crashCalls + rand.Int64N(20)
		var wg sync.WaitGroup
		for i, l := range ledgers {
			wg.Go(func() {
				for n := change; ; n++ {
					if !crashCall(t, p, i, n, l) {
						return
					}
					all.Add(1)
					if done.Add(1) == moment {
						_ = pid.Kill() // that it has ended is seen below
					}
				}
			})
		}
		wg.Wait()
		change += 10_000
		p.Close()
	}
	t.Logf("%d acknowledged calls over %d rounds", all.Load(), rounds)
	if want := int64(rounds * crashCalls); all.Load() < want {
		t.Errorf("%d acknowledged calls, want %d", all.Load(), want)
	}
}

// crashCall makes the nth call of a caller, and reports whether it was
// acknowledged.
func crashCall(t *testing.T, p *sdktest.Plugin, caller, n int, l *ledger) bool {
	t.Helper()
	l.key, l.open = fmt.Sprintf("caller%d/%d", caller, n%crashKeys), crashText(caller, n)
	name, in := "memory_save", args{"key": l.key, "content": l.open}
	switch {
	case n%7 == 3 && l.acknowledged[l.key] != "":
		name, in, l.open = "memory_delete", args{"key": l.key}, ""
	case n%5 == 2 && l.acknowledged[l.key] != "":
		name = "memory_update"
	}
	r := p.Call(t.Context(), name, in)
	if r.Error != nil {
		if r.Error.Code != tool.PluginCrashed {
			t.Errorf("%s(%s) = %v: %v", name, l.key, r.Error, r.Error.Unwrap())
		}
		return false
	}
	l.acknowledged[l.key] = l.open
	l.key = ""
	return true
}

// checkLedger compares the notes with what a caller knows.
func checkLedger(t *testing.T, p *sdktest.Plugin, caller int, l *ledger) {
	t.Helper()
	for k := range crashKeys {
		key := fmt.Sprintf("caller%d/%d", caller, k)
		r := p.Call(t.Context(), "memory_get", args{"key": key})
		var got shown
		switch {
		case r.Error == nil:
			if err := json.Unmarshal(r.Structured, &got); err != nil {
				t.Fatal(err)
			}
		case r.Error.Code != tool.NotFound:
			t.Fatalf("memory_get(%s) = %v: %v", key, r.Error, r.Error.Unwrap())
		}
		allowed := []string{l.acknowledged[key]}
		if key == l.key {
			allowed = append(allowed, l.open)
		}
		if !slices.Contains(allowed, got.Content) {
			t.Errorf("%s says %.60q, %d bytes; acknowledged was %.60q", key, got.Content, len(got.Content), allowed)
		}
		l.acknowledged[key] = got.Content
		if got.Content == "" {
			continue
		}
		// It is also found: text and index are of one change.
		var out hits
		found := p.Call(t.Context(), "memory_search", args{"query": got.Content[:min(len(got.Content), 60)], "mode": "keyword", "top_k": 20})
		if err := json.Unmarshal(found.Structured, &out); err != nil {
			t.Fatalf("memory_search = %v", found.Error)
		}
		if !slices.ContainsFunc(out.Results, func(h hit) bool { return h.Key == key }) {
			t.Errorf("%s is not found by what it says: %.60q", key, got.Content)
		}
	}
	l.key = ""
}

// Control of the crash test: the same calls with notes in plain files lose or tear some.
func TestCrashControl(t *testing.T) {
	dir := t.TempDir()
	torn := 0
	for range 40 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"MEMORY_CRASH_CONTROL=" + dir}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 1 + rand.N(200) { // any moment will do
			if _, err := fmt.Fscanln(out, new(int)); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, _ = cmd.Process.Wait() // it was killed
		for k := range crashKeys {
			data, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(k)))
			if err != nil {
				continue
			}
			var caller, n int
			if _, err := fmt.Sscanf(string(data), "caller%d change%d.", &caller, &n); err != nil || string(data) != crashText(caller, n) {
				torn++
			}
		}
		if torn > 0 {
			return
		}
	}
	t.Error("nothing was torn without the store: the crash test would prove nothing")
}

// crashControl is the work of the process that is killed in the control run.
func crashControl(dir string) error {
	for n := 0; ; n++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(n%crashKeys)))
		if err != nil {
			return err
		}
		for part := range strings.SplitAfterSeq(crashText(0, n), ".") {
			if _, err := f.WriteString(part); err != nil {
				return err
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, n); err != nil {
			return err
		}
	}
}

// readPID waits for the file in which the plugin says which process it is.
func readPID(t *testing.T, path string) *os.Process {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	return process
}
