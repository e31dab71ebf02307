package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// mark names the processes of one test in the list of processes.
type mark string

func newMark() mark { return mark("survivor-" + rand.Text()) }

// sleeper is a command that sleeps under the mark.
func (m mark) sleeper(of string) string {
	return fmt.Sprintf("bash -c 'exec -a %s-%s sleep 1000'", m, of)
}

// pids finds the processes of the mark.
func (m mark) pids(t *testing.T, of string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, file := range files {
		line, _ := os.ReadFile(file) // it may have ended
		if !bytes.HasPrefix(line, []byte(string(m)+"-"+of+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// await waits until there are so many processes of the mark.
func (m mark) await(t *testing.T, of string, n int) {
	t.Helper()
	for tick, end := time.Tick(5*time.Millisecond), time.After(patience); ; {
		found := m.pids(t, of)
		if len(found) == n {
			return
		}
		select {
		case <-tick:
		case <-end:
			t.Fatalf("%d processes of %s are there, want %d", len(found), of, n)
		}
	}
}
