package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// TestFullDisk fills the disk of a host's journal. Reads continue, changes are refused and do
// not run, /healthz reports the problem, and everything works again once there is space.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// fill fills the disk and returns a function that frees space.
		fill func(t *testing.T, h *host) (space func() error)
		root bool
	}{
		{"no space on the device", ballast, true},
		{"files may not grow", limitFiles, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := writeConfig(t, listening+writing+counting)
			if tt.root {
				mountSmall(t, filepath.Join(filepath.Dir(config), "state"))
			}
			h := serve(t, config)
			call, id := h.begin(t, "probe_count", map[string]any{"note": "asked before"})
			if o := h.post(t, "probe_tally", map[string]any{"note": "before"}); o.Status != client.Success {
				t.Fatalf("control: with space a call = %s", asJSON(o))
			}
			h.ok(t, "approvals", "show", id) // while the host can still record that
			space := tt.fill(t, h)

			ran, o := 0, client.Outcome{}
			for o.Error == nil { // the files may have free space inside
				if ran = len(h.counted()); ran > 2000 {
					t.Fatal("2,000 calls fit on a full disk")
				}
				o = h.post(t, "probe_tally", map[string]any{"note": "full"})
			}
			if o.Error.Code != "UNAVAILABLE" || !strings.Contains(o.Error.Message, "cannot be recorded") || !strings.Contains(o.Error.Hint, "disk") {
				t.Errorf("on a full disk a call = %s, want that it cannot be recorded", asJSON(o))
			}
			if text := h.must(t, 503, "GET", "/healthz", "", ""); !strings.Contains(text, "the journal cannot be written") {
				t.Errorf("/healthz = %s", text)
			}
			if o := h.post(t, "read_file", map[string]any{"path": "hello.txt"}); o.Status != client.Success {
				t.Errorf("on a full disk a read = %s", asJSON(o))
			}
			if o := h.post(t, "probe_count", map[string]any{"note": "asked"}); o.Error == nil || o.Error.Code != "UNAVAILABLE" {
				t.Errorf("on a full disk a call that would be asked about = %s", asJSON(o))
			}
			if _, stderr, code := h.cli("approvals", "approve", id); code != 1 || !strings.Contains(stderr, "could not be recorded") {
				t.Errorf("on a full disk an approval exits with %d and says %q", code, stderr)
			}
			if got := len(h.counted()); got != ran {
				t.Errorf("%d calls have run on a full disk", got-ran)
			}

			if err := space(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the host can write again", func() bool {
				status, _, err := h.send("GET", "/healthz", "", "")
				return err == nil && status == 200
			})
			h.answer(t, "approve", id)
			if o := h.outcome(t, call); o.Status != client.Success {
				t.Errorf("with space again the approved call = %s", asJSON(o))
			}
			if o := h.post(t, "probe_tally", map[string]any{"note": "after"}); o.Status != client.Success || len(h.counted()) != ran+2 {
				t.Errorf("with space again a call = %s", asJSON(o))
			}
			h.ok(t, "journal", "verify")
		})
	}
}

// ballast fills the file system of the state directory with a file.
func ballast(t *testing.T, h *host) (space func() error) {
	t.Helper()
	path := filepath.Join(h.stateDir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return func() error { return os.Remove(path) }
}

// limitFiles stops the host's files from growing.
func limitFiles(t *testing.T, h *host) (space func() error) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(h.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(h.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	return func() error { return unix.Prlimit(h.cmd.Process.Pid, unix.RLIMIT_FSIZE, &before, nil) }
}

// mountSmall mounts a small file system at dir, which it creates, for the duration of the
// test. If that is not possible, the test is skipped; in CI it fails.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("a file system cannot be mounted: %v", err)
		}
		t.Skipf("a file system cannot be mounted here, which root may do: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
}

// TestDatabaseIsTakenAway moves the database away while the host runs. Changes are refused and
// do not run, /readyz and doctor report the problem, and everything works again once the
// database is back.
func TestDatabaseIsTakenAway(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing+counting)
	h := serve(t, config)
	if o := h.post(t, "probe_tally", map[string]any{"note": "before"}); o.Status != client.Success {
		t.Fatalf("control: with the database a call = %s", asJSON(o))
	}
	path := filepath.Join(filepath.Dir(config), "state", "toolhost.db")
	if err := os.Rename(path, path+".aside"); err != nil {
		t.Fatal(err)
	}
	o := h.post(t, "probe_tally", map[string]any{"note": "gone"})
	if o.Error == nil || !strings.Contains(o.Error.Message, "cannot be recorded") || !strings.Contains(o.Error.Hint, "database was removed") {
		t.Errorf("without the database a call = %s, want that it cannot be recorded", asJSON(o))
	}
	for _, route := range []string{"/healthz", "/readyz"} {
		if text := h.must(t, 503, "GET", route, "", ""); !strings.Contains(text, "the database was removed or replaced") {
			t.Errorf("%s = %s", route, text)
		}
	}
	if out, _, code := h.cli("doctor"); code != 1 || !strings.Contains(out, "journal: not known: the database is missing while a host runs") {
		t.Errorf("doctor exits with %d and says %q", code, out)
	}
	if got := len(h.counted()); got != 1 {
		t.Errorf("%d calls have run, want the one before", got)
	}
	if err := os.Rename(path+".aside", path); err != nil {
		t.Fatal(err)
	}
	if o := h.post(t, "probe_tally", map[string]any{"note": "after"}); o.Status != client.Success {
		t.Errorf("with the database back a call = %s", asJSON(o))
	}
	h.must(t, 200, "GET", "/readyz", "", "")
}
