package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A snapshot whose writer was killed does not count, and its remains are removed.
func TestASnapshotIsKilled(t *testing.T) {
	dir := t.TempDir()
	run := func() *plugin {
		return &plugin{sdktest.StartBinary(t, os.Args[0], sdktest.Options{
			Env: []string{"MEMORY_AS_PLUGIN=1", "MEMORY_PID_FILE=" + filepath.Join(dir, "pid")}, Context: tool.Context{UserDir: dir},
		}), t}
	}
	p := run()
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "{\"content\":\"number%d %s\"}\n", i, strings.Repeat("word ", 50))
	}
	p.must("memory_import", args{"data": lines.String()}, nil)
	parts := func() []string {
		t.Helper()
		all, err := filepath.Glob(filepath.Join(dir, "*-snapshots", "*.part*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for deadline := time.Now().Add(time.Minute); len(parts()) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no snapshot was interrupted within a minute")
		}
		pid, made := readPID(t, filepath.Join(dir, "pid")), make(chan struct{})
		go func() { // ends with the call
			defer close(made)
			p.Call(t.Context(), "memory_export", args{"format": "snapshot"})
		}()
		for waiting := true; waiting; { // until it has begun
			select {
			case <-made:
				waiting = false
			default:
				waiting = len(parts()) == 0
			}
		}
		_ = pid.Kill() // that it has ended is seen below
		<-made
		p.Close()
		p = run()
	}
	r := p.Call(t.Context(), "memory_import", args{"snapshot": "none"})
	if codeOf(r) != tool.NotFound || strings.Contains(r.Error.Hint, store.Part) {
		t.Errorf("memory_import of no snapshot = %v", r.Error)
	}
	for name := range strings.SplitSeq(r.Error.Hint, " ") { // those made before the kill
		if name = strings.Trim(name, ","); strings.HasPrefix(name, "snapshot-") {
			p.must("memory_import", args{"snapshot": name}, nil)
		}
	}
	for _, part := range parts() {
		old := time.Now().Add(-2 * leftOver)
		if err := os.Chtimes(part, old, old); err != nil {
			t.Fatal(err)
		}
	}
	var made exported
	p.must("memory_export", args{"format": "snapshot"}, &made)
	if left := parts(); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	p.must("memory_import", args{"snapshot": made.Snapshot}, nil)
}

// A damaged snapshot is reported by name, and nothing is imported from it.
func TestASnapshotIsDamaged(t *testing.T) {
	dir := t.TempDir()
	p := startIn(t, dir, nil)
	p.save(args{"content": "one"})
	var made exported
	p.must("memory_export", args{"format": "snapshot"}, &made)
	files, err := filepath.Glob(filepath.Join(dir, "*-snapshots", made.Snapshot+".db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("snapshots: %v, %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	r := p.Call(t.Context(), "memory_import", args{"snapshot": made.Snapshot})
	if codeOf(r) != tool.Failed || !strings.Contains(r.Error.Message, made.Snapshot+" is damaged") {
		t.Errorf("memory_import of a damaged snapshot = %v", r.Error)
	}
	if got := p.find(args{"query": "one"}); len(got) != 1 {
		t.Errorf("afterwards %q is found", got)
	}
}

// Simultaneous snapshots are all written, each under its own name.
func TestSnapshotsAtOnce(t *testing.T) {
	const calls = 20
	p := start(t, map[string]any{"snapshots": calls})
	p.save(args{"content": "I like tea"})
	results := make([]tool.Result, calls)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = p.Call(t.Context(), "memory_export", args{"format": "snapshot"}) })
	}
	all.Wait()
	names := map[string]bool{}
	for _, r := range results {
		var out exported
		if r.Error != nil || json.Unmarshal(r.Structured, &out) != nil || out.Notes != 1 || out.Bytes == 0 {
			t.Fatalf("memory_export = %s, %v: %v", r.Structured, r.Error, r.Error.Unwrap())
		}
		names[out.Snapshot] = true
	}
	if len(names) != calls {
		t.Errorf("%d snapshots have %d names", calls, len(names))
	}
	for name := range names {
		p.must("memory_import", args{"snapshot": name}, nil)
	}
}

// Snapshots go in the order in which they were written, also if the clock was put
// back since the first.
func TestSnapshotsOfAnEarlierTime(t *testing.T) {
	dir := t.TempDir()
	p := startIn(t, dir, map[string]any{"snapshots": 2})
	p.save(args{"content": "I like tea"})
	var before exported
	p.must("memory_export", args{"format": "snapshot"}, &before)
	files, err := filepath.Glob(filepath.Join(dir, "*-snapshots", before.Snapshot+".db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("snapshots: %v, %v", files, err)
	}
	later := filepath.Join(filepath.Dir(files[0]), "snapshot-99990101T000000.000Z.db")
	if err := os.Rename(files[0], later); err != nil {
		t.Fatal(err)
	}
	made := make([]exported, 3)
	for i := range made {
		p.must("memory_export", args{"format": "snapshot"}, &made[i])
	}
	var left []string
	for _, of := range made[1:] {
		left = append(left, filepath.Join(filepath.Dir(later), of.Snapshot+".db"))
		p.must("memory_import", args{"snapshot": of.Snapshot}, nil)
	}
	if got, err := filepath.Glob(filepath.Join(filepath.Dir(later), "*")); err != nil || !slices.Equal(got, left) {
		t.Errorf("there are %q, want %q: %v", got, left, err)
	}
}

// A place where no snapshot can be written is reported as a failure.
func TestASnapshotWithoutAPlace(t *testing.T) {
	dir := t.TempDir()
	p := startIn(t, dir, nil)
	p.save(args{"content": "I like tea"})
	p.must("memory_export", args{"format": "snapshot"}, nil)
	snapshots, err := filepath.Glob(filepath.Join(dir, "*-snapshots"))
	if err != nil || len(snapshots) != 1 {
		t.Fatalf("directories of snapshots: %v, %v", snapshots, err)
	}
	if err := os.RemoveAll(snapshots[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self", snapshots[0]); err != nil {
		t.Fatal(err)
	}
	if r := p.Call(t.Context(), "memory_export", args{"format": "snapshot"}); codeOf(r) != tool.Failed || !strings.Contains(r.Error.Message, "could not be written") {
		t.Errorf("memory_export = %v", r.Error)
	}
}

// twoProcesses keep the notes of one user.
func twoProcesses(t *testing.T, dir string, snapshots int) []*plugin {
	t.Helper()
	var processes []*plugin
	for range 2 {
		p := &plugin{sdktest.StartBinary(t, os.Args[0], sdktest.Options{
			Env: []string{"MEMORY_AS_PLUGIN=1"}, Settings: map[string]any{"snapshots": snapshots}, Context: tool.Context{UserDir: dir},
		}), t}
		p.save(args{"content": "I like tea"})
		processes = append(processes, p)
	}
	return processes
}

// Of the snapshots that two processes write at the same time, the newest stays.
func TestTheNewestSnapshotStays(t *testing.T) {
	processes := twoProcesses(t, t.TempDir(), 1)
	for range 40 {
		results := make([]tool.Result, len(processes))
		var all sync.WaitGroup
		for i, p := range processes {
			all.Go(func() { results[i] = p.Call(t.Context(), "memory_export", args{"format": "snapshot"}) })
		}
		all.Wait()
		newest := ""
		for _, r := range results {
			var out exported
			if r.Error != nil || json.Unmarshal(r.Structured, &out) != nil {
				t.Fatalf("memory_export = %s, %v", r.Structured, r.Error)
			}
			newest = max(newest, out.Snapshot)
		}
		if r := processes[0].Call(t.Context(), "memory_import", args{"snapshot": newest}); r.Error != nil {
			t.Fatalf("memory_import of the newest snapshot = %v", r.Error)
		}
	}
}

// Two processes write snapshots of one file at the same time, each under its own name.
func TestSnapshotsOfTwoProcesses(t *testing.T) {
	const each = 30
	processes := twoProcesses(t, t.TempDir(), 2*each)
	results := make([][each]tool.Result, len(processes))
	var all sync.WaitGroup
	for i, p := range processes {
		all.Go(func() {
			for n := range each {
				results[i][n] = p.Call(t.Context(), "memory_export", args{"format": "snapshot"})
			}
		})
	}
	all.Wait()
	names := map[string]bool{}
	for i := range results {
		for _, r := range results[i] {
			var out exported
			if r.Error != nil {
				t.Fatalf("memory_export in process %d = %v: %v", i, r.Error, r.Error.Unwrap())
			}
			if err := json.Unmarshal(r.Structured, &out); err != nil {
				t.Fatal(err)
			}
			names[out.Snapshot] = true
		}
	}
	if len(names) != 2*each {
		t.Errorf("%d snapshots have %d names", 2*each, len(names))
	}
}
