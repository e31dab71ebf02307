package store

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Opening a file once more leaves this process the locks that it has on it.
func TestOpeningKeepsLocks(t *testing.T) {
	path := temp(t)
	s := open(t, path)
	s.put(t, noteOf("note-1", "one"))
	info, err := os.Stat(path)
	must(t, err)
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no inode")
	}
	pid := strconv.Itoa(os.Getpid())
	locks := func() int {
		t.Helper()
		data, err := os.ReadFile("/proc/locks")
		must(t, err)
		n := 0
		for line := range strings.Lines(string(data)) {
			// Another file system may have a file with the same number.
			if f := strings.Fields(line); len(f) > 5 && f[4] == pid && strings.HasSuffix(f[5], fmt.Sprintf(":%d", stat.Ino)) {
				n++
			}
		}
		return n
	}
	before := locks()
	if before == 0 {
		t.Fatal("an open file has no lock: the test would prove nothing")
	}
	must(t, check(t.Context(), path))
	if after := locks(); after < before {
		t.Errorf("there are %d locks on the file, before there were %d", after, before)
	}
}
