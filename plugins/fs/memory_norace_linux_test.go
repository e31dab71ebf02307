//go:build !race

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// greedyFiles are as large as files may be that are edited, and have as many
// lines, or as many that are different.
func greedyFiles() map[string]string {
	var different strings.Builder
	for i := 0; different.Len()+10 < edit.MaxBytes; i++ {
		fmt.Fprintf(&different, "%x\n", i)
	}
	fill := func(line string) string { return strings.Repeat(line, edit.MaxBytes/len(line)) }
	return map[string]string{
		"ends": fill("\n"), "empty": strings.Repeat("\n", edit.MaxLines-10), "lines": fill("abcd\n"), "returns": fill("abc\r\n"), "more": fill("some other line\n"),
		"different": different.String(), "one": fill("x"), "latin1": fill("\xe9\xe8\xe7\xe6\n"), "utf16": "\xFF\xFE" + fill("\xac\x20\xac\x20\xac\x20\x0a\x00")[:edit.MaxBytes-8],
		"half": strings.Repeat("\n", snapshot.MaxDiff), "small": "small\n",
	}
}

type greedyCall struct {
	tool    string
	in      any
	preview bool
}

// greedyCalls are the calls that take the most memory.
func greedyCalls() []greedyCall {
	var calls []greedyCall
	long := strings.Repeat("a\n\n", 100_000)
	for name := range greedyFiles() {
		every := editCall(name, "\n", "\n\n")
		every.ReplaceAll = true
		dry := editCall(name, "a\n", "b\n")
		dry.ReplaceAll, dry.DryRun = true, true
		calls = append(
			calls,
			greedyCall{tool: "edit_file", in: editCall(name, "nowhere at all", "x")},
			greedyCall{tool: "edit_file", in: editCall(name, long, "x")},
			greedyCall{tool: "edit_file", in: every}, greedyCall{tool: "edit_file", in: every, preview: true},
			greedyCall{tool: "edit_file", in: dry},
			greedyCall{tool: "apply_patch", in: applyPatchArgs{DryRun: true, Patch: begin("*** Update File: " + name + "\n@@\n+last\n*** End of File\n")}},
			greedyCall{tool: "apply_patch", in: applyPatchArgs{Patch: begin("*** Update File: " + name + "\n@@\n-nowhere at all\n+x\n")}},
			greedyCall{tool: "write_file", in: writeFileArgs{Path: name, Content: long}, preview: true},
			greedyCall{tool: "diff_files", in: diffFilesArgs{Path: name, Other: "half"}},
			greedyCall{tool: "file_info", in: fileInfoArgs{Path: name}},
			greedyCall{tool: "read_file", in: readFileArgs{Path: name}},
		)
	}
	three := applyPatchArgs{Patch: begin("*** Update File: lines\n@@\n+1\n*** End of File\n", "*** Update File: different\n@@\n-ff\n+FF\n", "*** Update File: more\n@@\n+1\n*** End of File\n")}
	dry := applyPatchArgs{Patch: three.Patch, DryRun: true}
	misses := applyPatchArgs{Patch: begin("*** Update File: returns\n@@\n+1\n*** End of File\n", "*** Update File: lines\n@@\n+1\n*** End of File\n", "*** Update File: different\n@@\n-none\n+1\n")}
	return append(calls, greedyCall{tool: "apply_patch", in: three, preview: true}, greedyCall{tool: "apply_patch", in: dry}, greedyCall{tool: "apply_patch", in: misses})
}

// No allowed call takes more memory than the plugin has, whatever calls came before it or run at
// the same time: each ends, and an innocent call after it succeeds.
func TestMemoryIsBounded(t *testing.T) {
	const workers = 12
	dir := filetest.Tree(t, greedyFiles())
	calls := greedyCalls()
	random := rand.New(rand.NewPCG(1, 2)) // the same orders each time
	seed := soak.Seed(t)
	for _, together := range []int{1, workers} {
		t.Run(fmt.Sprintf("%d at a time", together), func(t *testing.T) {
			p := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
				Env:     []string{"FS_AS_PLUGIN=1"},
				Limits:  sdktest.Limits{Memory: 512 * tool.MiB}, // as config.hcl gives it
				Context: tool.Context{Roots: []string{dir}, MaxOutput: 64 * tool.KiB, UserDir: t.TempDir()},
			})
			queue := make(chan greedyCall)
			var wg sync.WaitGroup
			for range together {
				wg.Go(func() { // ends with the queue
					for c := range queue {
						if err := c.make(t, p); err != nil {
							t.Errorf("%s of %.200v: %v", c.tool, asJSON(t, c.in), err)
						}
					}
				})
			}
			order := random.Perm(len(calls))
			share := 4
			if together == 1 {
				share = 8 // they take as long as all of them together
			}
			for n, i := range order {
				if !soak.Today(seed, n, share) {
					continue
				}
				if t.Failed() {
					break
				}
				queue <- calls[i]
			}
			close(queue)
			wg.Wait()
		})
	}
}

// make makes the call and an innocent one. The error says that the plugin is gone; the answer to
// a refused call does not matter.
func (c greedyCall) make(t *testing.T, p *sdktest.Plugin) error {
	t.Helper()
	if c.preview {
		_, _ = p.Preview(t.Context(), c.tool, c.in) // it may be refused
	} else {
		p.Call(t.Context(), c.tool, c.in)
	}
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: "small"}); got.Error != nil {
		return got.Error
	}
	return nil
}
