package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/sdktest"
)

// readers are the processes of this program that read a document.
func readers(t *testing.T) []int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, folder := range folders {
		line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || !strings.HasSuffix(string(line), "\x00read-document\x00") {
			continue // it has ended, or is another
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if other, linkErr := os.Readlink(filepath.Join(folder, "exe")); err == nil && linkErr == nil && other == program {
			found = append(found, pid)
		}
	}
	return found
}

// Pages that take forever do not block the reading of other pages: reading them ends with the
// call.
func TestHostilePages(t *testing.T) {
	brackets := "<p>" + strings.Repeat("[", 200_000)
	deep := strings.Repeat(strings.Repeat("<div>", 400)+strings.Repeat("</div>", 400), 50)
	w := newWorld(t, site{
		"/brackets": serve("text/html", brackets),
		"/deep":     serve("text/html", deep),
		"/page":     serve("text/html", "<p>hello"),
	})
	for name, in := range map[string]webFetchArgs{
		"markdown": {URL: "https://example.com/brackets"},
		"selector": {URL: "https://example.com/deep", Format: "text", Selector: ":has(:has(:has(:has(b))))"},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.start(t, sdktest.Options{Settings: map[string]any{"robots": false, "host_rate": 100_000}})
			patient, enough := context.WithTimeout(t.Context(), 40*time.Second) // less than a process has that uses no time
			defer enough()
			ctx, cancel := context.WithCancel(patient)
			defer cancel()
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() { _ = p.Call(ctx, "web_fetch", in) })
			}
			var stopped []int
			for len(stopped) == 0 && patient.Err() == nil {
				for _, pid := range readers(t) {
					// While it is stopped the bound on its time cannot end it.
					if err := syscall.Kill(pid, syscall.SIGSTOP); err == nil {
						stopped = append(stopped, pid)
					}
				}
			}
			if len(stopped) == 0 {
				t.Fatal("nobody reads the page")
			}
			cancel()
			calls.Wait()
			runs := func(pid int) bool { return slices.Contains(readers(t), pid) }
			for patient.Err() == nil && slices.ContainsFunc(stopped, runs) {
				continue // it is about to end
			}
			for _, pid := range stopped {
				if runs(pid) {
					t.Errorf("the process %d reads on after the call", pid)
					_ = syscall.Kill(pid, syscall.SIGCONT) // its bound ends it
				}
			}
			again, end := context.WithTimeout(t.Context(), time.Minute)
			defer end()
			if got := p.Call(again, "web_fetch", webFetchArgs{URL: "https://example.com/page"}); got.Error != nil || !contains(got.Text(), "hello") {
				t.Errorf("another page: %v", got.Error)
			}
		})
	}
}
