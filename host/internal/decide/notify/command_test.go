package notify_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/notify"
	"github.com/toolhost/toolhost/internal/testprogram"
)

// TestHostileNames: names that look like shell code, or like further variables, stay texts.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, pipe := filepath.Join(dir, "notify"), filepath.Join(dir, "pipe")
	if err := testprogram.Write(program, strings.NewReader("#!/bin/sh\n(env; echo end) > \"$1\"\n")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, notify.Notifier{Name: "phone", Command: []string{program, pipe}})
	record := open("ap_1", "ada")
	record.Tool = "$(touch " + dir + "/ran)\nTOOLHOST_LINK=https://evil.example"
	s.Changed(record)
	file, err := os.Open(pipe) // when the command writes
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var link strings.Builder
	lines := bufio.NewScanner(file)
	for lines.Scan() && lines.Text() != "end" {
		if value, ok := strings.CutPrefix(lines.Text(), "TOOLHOST_LINK="); ok {
			link.WriteString(value)
		}
	}
	if link.String() != "https://tools.example.com/approvals/ap_1" {
		t.Errorf("TOOLHOST_LINK is %q", link.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a shell has read the name of a tool")
	}
}
