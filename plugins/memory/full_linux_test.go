package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// On a full disk nothing is saved, existing notes can be read, and deleting makes room.
func TestTheDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	p := &plugin{sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{"MEMORY_AS_PLUGIN=1"}, Limits: sdktest.Limits{FileSize: 1_000_000}, Context: tool.Context{UserDir: dir},
	}), t}
	saved := map[int]bool{}
	save := func(n int) bool {
		t.Helper()
		r := p.Call(t.Context(), "memory_save", args{"key": fmt.Sprint(n), "content": fmt.Sprintf("number%d ", n) + strings.Repeat("some words ", 300)})
		if r.Error == nil {
			saved[n] = true
			return true
		}
		if r.Error.Code != tool.ResourceExhausted || !strings.Contains(r.Error.Message, "disk is full") || r.Error.Hint == "" {
			t.Fatalf("memory_save without room = %v: %v", r.Error, r.Error.Unwrap())
		}
		return false
	}
	for n, refused := 0, 0; refused < 3; n++ { // the log may be full before the file is
		if n == 1000 {
			t.Fatal("there is always room")
		}
		if save(n) {
			refused = 0
		} else {
			refused++
		}
	}
	if got := p.find(args{"query": "number3", "mode": "keyword"}); len(got) != 1 {
		t.Errorf("without room a search finds %d notes", len(got))
	}
	if r := p.must("memory_stats", nil, nil); len(saved) < 10 || !strings.HasPrefix(r.Text(), fmt.Sprint(len(saved))+" memories") {
		t.Errorf("%d notes were acknowledged; memory_stats = %q", len(saved), r.Text())
	}
	for n := range saved {
		p.must("memory_delete", args{"key": fmt.Sprint(n)}, nil)
		delete(saved, n)
	}
	if !save(2000) {
		t.Error("there is no room when all notes are deleted")
	}
	p.must("memory_delete", args{"key": "2000"}, nil)
	for most := range 15 { // for some of these it is a delete that finds the log full
		for n := range most {
			if save(3000 + n) {
				continue
			}
			if !save(3000 + n) { // the first time has emptied the log
				t.Fatalf("there is no room for note %d of %d", n, most)
			}
		}
		for n := range most {
			p.must("memory_delete", args{"key": fmt.Sprint(3000 + n)}, nil)
		}
	}
}
