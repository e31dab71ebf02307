package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // for the control

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Two processes write to one file at the same time, and find each other's notes.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	var processes []*plugin
	for range 2 {
		processes = append(processes, &plugin{sdktest.StartBinary(t, os.Args[0], sdktest.Options{
			Env: []string{"MEMORY_AS_PLUGIN=1"}, Context: tool.Context{UserDir: dir},
		}), t})
	}
	const each = 100
	var wg sync.WaitGroup
	for i, p := range processes {
		wg.Go(func() {
			for n := range each {
				in := args{"key": fmt.Sprintf("%d/%d", i, n), "content": fmt.Sprintf("word%dx%d", i, n)}
				if r := p.Call(t.Context(), "memory_save", in); r.Error != nil {
					t.Errorf("memory_save(%v) = %v: %v", in, r.Error, r.Error.Unwrap())
				}
				if n%10 == 9 {
					in = args{"key": fmt.Sprintf("%d/%d", i, n-1)}
					if r := p.Call(t.Context(), "memory_delete", in); r.Error != nil {
						t.Errorf("memory_delete(%v) = %v: %v", in, r.Error, r.Error.Unwrap())
					}
				}
			}
		})
	}
	wg.Wait()
	for i, p := range processes {
		if r := p.must("memory_stats", nil, nil); !strings.HasPrefix(r.Text(), fmt.Sprint(2*each*9/10)+" memories") {
			t.Errorf("process %d: %q", i, r.Text())
		}
		for _, word := range []string{"word0x7", "word1x99"} {
			if got := p.find(args{"query": word, "mode": "keyword"}); len(got) != 1 {
				t.Errorf("process %d finds %q for %s", i, got, word)
			}
		}
		if got := p.find(args{"query": "word0x8 word1x8", "mode": "keyword"}); len(got) != 0 {
			t.Errorf("process %d finds %q, which was deleted", i, got)
		}
	}
}

// Control of the test of two processes: two that write to one database without the
// locks that keep them apart lose rows, or damage it.
func TestTwoProcessesControl(t *testing.T) {
	const each = 100
	for range 20 {
		path := filepath.Join(t.TempDir(), "control.db")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE note (content TEXT)"); err != nil {
			t.Fatal(err)
		}
		var writers []*exec.Cmd
		for range 2 {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = []string{"MEMORY_TWO_CONTROL=" + path}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			writers = append(writers, cmd)
		}
		damaged := false
		for _, cmd := range writers {
			damaged = cmd.Wait() != nil || damaged // it has found the database damaged
		}
		rows, verdict := 0, ""
		err = db.QueryRowContext(t.Context(), "SELECT count(*) FROM note").Scan(&rows)
		if err == nil {
			err = db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict)
		}
		if closed := db.Close(); closed != nil {
			t.Error(closed)
		}
		if damaged || err != nil || rows < 2*each || verdict != "ok" {
			return
		}
	}
	t.Error("nothing was lost without locks: the test of two processes would prove nothing")
}

// twoControl is the work of each process in the control run.
func twoControl(path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?vfs=unix-none&_pragma=journal_mode(delete)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	for n := range 100 {
		if _, err := db.ExecContext(context.Background(), "INSERT INTO note (content) VALUES (?)", strings.Repeat(fmt.Sprint(n, " "), 20)); err != nil {
			return err
		}
	}
	return db.Close()
}
