//go:build !race

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The races here are in the file system, where the race detector sees nothing.

// A process that can rename in the workspace gains nothing by a swap between a tool's check of a
// path and its use. The control follows links, compares the beginning and then uses the name; it
// reads and writes outside in the same run.
func TestSwapRaceOfTools(t *testing.T) {
	const (
		raceTime = 5 * time.Second
		least    = 150  // attempts of each tool
		bound    = 2000 // attempts of each until the control must have leaked, and each tool have succeeded
	)
	outside := filetest.Tree(t, map[string]string{"f": outsideSecret})
	dir := filetest.Tree(t, map[string]string{"inside/f": "old\n", "file": "old\n", "mine": "mine\n"})
	p := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{"FS_AS_PLUGIN=1"}, Context: tool.Context{Roots: []string{dir}, MaxOutput: 64 * tool.KiB, UserDir: t.TempDir()},
	})
	// Every second time it is the file that is swapped, not the directory.
	path := func(n int) string { return []string{"name/f", "swapped"}[n%2] }
	attempts := []struct {
		tool string
		args func(n int) any
	}{
		{"read_file", func(n int) any { return readFileArgs{Path: path(n)} }},
		{"list_directory", func(int) any { return listDirectoryArgs{Path: "name", Depth: 2} }},
		{"search_content", func(n int) any {
			return searchContentArgs{Path: []string{"name", "."}[n%2], Pattern: "tell|old"}
		}},
		{"file_info", func(n int) any { return fileInfoArgs{Path: path(n)} }},
		{"write_file", func(n int) any { return writeFileArgs{Path: path(n), Content: "old\n"} }},
		{"edit_file", func(n int) any { return editCall(path(n), "old", "old ") }},
		{"apply_patch", func(int) any { return applyPatchArgs{Patch: begin("*** Add File: name/made\n+x\n")} }},
		{"copy_file", func(n int) any {
			return moveArgs{Source: path(n), Dest: fmt.Sprintf("copy-%d", n%10), Overwrite: true}
		}},
		{"move_file", func(int) any { return moveArgs{Source: "mine", Dest: "name/mine", Overwrite: true} }},
		{"delete_file", func(int) any { return deleteFileArgs{Path: "name/made"} }},
	}
	defer swapName(t, dir, "inside", "name", outside)()
	defer swapName(t, dir, "file", "swapped", filepath.Join(outside, "f"))()
	var leaked atomic.Bool
	defer control(dir, &leaked)()
	done := make(map[string]int)
	enough := func() bool {
		for _, a := range attempts {
			if done[a.tool] == 0 {
				return false
			}
		}
		return leaked.Load()
	}
	ctx, cancel := context.WithTimeout(t.Context(), raceTime)
	defer cancel()
	for n := 0; n < least || !enough() || ctx.Err() == nil; n++ {
		if n >= bound && !enough() {
			t.Fatalf("in %d attempts the control leaked: %v; these tools have succeeded: %v", n, leaked.Load(), done)
		}
		for _, a := range attempts {
			got := p.Call(t.Context(), a.tool, a.args(n))
			if strings.Contains(got.Text(), "tell") {
				t.Fatalf("%s tells what is outside: %q", a.tool, got.Text())
			}
			if got.Error == nil {
				done[a.tool]++
			}
		}
		// Prepares the next round, if this one succeeded.
		_ = os.WriteFile(filepath.Join(dir, "mine"), []byte("mine\n"), 0o600)
	}
	if diff := cmp.Diff(map[string]string{"f": outsideSecret}, contents(t, outside)); diff != "" {
		t.Errorf("what is outside has changed (-want +got):\n%s", diff)
	}
	for n := range 10 {
		if text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("copy-%d", n))); err == nil && strings.Contains(string(text), "tell") {
			t.Errorf("copy-%d holds what is outside", n)
		}
	}
	t.Logf("the tools have succeeded so often: %v", done)
}
