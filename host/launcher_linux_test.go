package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLauncherComesFirst checks that the launcher runs before the packages that it does not
// need are initialized, which take most of a program's start.
func TestLauncherComesFirst(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), "__launch")
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "__launch is internal") {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "\ninit golang.org/x/sys/unix @") {
		t.Errorf("no trace of initialisation:\n%s", out)
	}
	for _, late := range []string{"google.golang.org/protobuf/types", "modernc.org/sqlite", "net/http", "path/filepath", "regexp"} {
		if strings.Contains(string(out), "\ninit "+late) {
			t.Errorf("%s is initialised before the launcher runs:\n%s", late, out)
		}
	}
}
