package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestForkBomb has a command create processes without end. The limit stops it, no process
// outlives the call, and the plugin keeps working. The kernel does not count root's processes,
// so TestProgramsOfAnOrdinaryUser also runs this test.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		return
	}
	limits := "sandbox {\n    limits {\n      processes = 64\n    }"
	h := serve(t, writeConfig(t, listening+strings.Replace(fmt.Sprintf(shellUnasked, "host"), "sandbox {", limits, 1)))
	mark := "bomb-" + rand.Text()
	h.write(t, "bomb.sh", "bomb() { bomb | bomb & }; bomb; sleep 1000\n") // in a file, since no rule allows it as text
	got := h.post(t, "shell_exec", map[string]any{"command": "exec -a " + mark + " bash bomb.sh", "timeout": 2})
	if text := string(got.Raw); !strings.Contains(text, "Resource temporarily unavailable") {
		t.Errorf("the bomb answers %s", text)
	}
	eventually(t, "none of its processes is left", func() bool { return marked(mark) == 0 })
	if got := h.post(t, "shell_exec", map[string]any{"command": "echo works"}); got.Error != nil || !strings.Contains(string(got.Raw), "works") {
		t.Errorf("after it, shell_exec answers %s", got.Raw)
	}
}
