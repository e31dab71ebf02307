package testprogram_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/testprogram"
)

// TestWrite writes programs and executes each at once, on several goroutines.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 25 {
				path := filepath.Join(dir, fmt.Sprint(i, "-", j))
				if err := testprogram.Write(path, strings.NewReader("#!/bin/sh\necho done\n")); err != nil {
					t.Error(err)
				}
				if out, err := exec.CommandContext(t.Context(), path).Output(); err != nil || string(out) != "done\n" {
					t.Errorf("%s: %q, %v", path, out, err)
				}
			}
		})
	}
	all.Wait()
}
