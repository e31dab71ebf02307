package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// probeBlock enables the probe plugin with the given limits. The plugin sees the same process
// ids as the tests.
func probeBlock(limits string) string {
	return `
plugin "probe" {
  path   = "probe"
  tier   = "read_only"
  claims = "trust"
  sandbox {
    isolation = "basic"
    filesystem { exec = ["system"] }
    limits {
` + limits + `
    }
  }
}
`
}

// TestLimitsAreInForce gives each of the eight limits an unusual value and reads it back from
// the kernel.
func TestLimitsAreInForce(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, probeBlock(`
      memory        = "471859201B"
      open_files    = 251
      processes     = 12347
      file_size     = "2097153B"
      stack         = "8388609B"
      core          = "4097B"
      cpu_time      = "1237s"
      address_space = "34359738369B"
`))
	want := map[string]string{
		"Max data size":      "471859201",
		"Max open files":     "251",
		"Max processes":      "12347",
		"Max file size":      "2097153",
		"Max stack size":     "8388609",
		"Max core file size": "4097",
		"Max cpu time":       "1237",
		"Max address space":  "34359738369",
	}
	s := connect(t, config, revisions[0], nil)
	own, ofChild, ok := strings.Cut(s.must(t, "probe_limits", nil), "---\n")
	if !ok {
		t.Fatal("probe_limits did not print two tables")
	}
	seenFromOutside, err := os.ReadFile("/proc/" + s.must(t, "probe_process", nil) + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	for whose, table := range map[string]string{
		"the plugin's": own, "its child's": ofChild, "seen from the host, the plugin's": string(seenFromOutside),
	} {
		for name, value := range want {
			line := regexp.MustCompile(`(?m)^` + name + ` +(\S+) +(\S+)`).FindStringSubmatch(table)
			if line == nil || line[1] != value || line[2] != value {
				t.Errorf("%s %q = %v, want %s soft and hard", whose, name, line, value)
			}
		}
	}
}

// TestLimitsAreNamed exceeds a limit and checks that the error names it.
func TestLimitsAreNamed(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, probeBlock(`
      memory     = "256MiB"
      open_files = 64
      file_size  = "1MiB"
`))
	for _, tt := range []struct {
		tool string
		n    int
		want string
	}{
		{"probe_allocate", 1024, "memory limit (256MiB)"},
		{"probe_open", 1000, "limit of open files (64)"},
		{"probe_write", 2 << 20, "file size limit (1MiB)"},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			s := connect(t, config, revisions[0], nil)
			text, failed := s.call(t.Context(), t, tt.tool, map[string]any{"n": tt.n})
			if !failed || !strings.Contains(text, tt.want) {
				t.Errorf("%s(%d) = %q, failed %v; want a failure that says %q", tt.tool, tt.n, text, failed, tt.want)
			}
		})
	}
}

// TestPluginInheritsNothing checks the environment of a plugin.
func TestPluginInheritsNothing(t *testing.T) {
	t.Parallel()
	cmd := toolhost(t.Context(), writeConfig(t, probeBlock("")), "call", "probe_environment")
	cmd.Env = append(os.Environ(), "HOST_SECRET=hunter2")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); strings.Contains(text, "hunter2") || !strings.Contains(text, "PLUGIN_") {
		t.Errorf("the plugin's environment is:\n%s", text)
	}
}

// TestOutputIsCut requests more output than the budget.
func TestOutputIsCut(t *testing.T) {
	t.Parallel()
	s := connect(t, writeConfig(t, probeBlock("")), revisions[0], nil)
	text := s.must(t, "probe_text", map[string]any{"n": 142857})
	const suffix = "[output truncated — original size: 142,857 bytes]"
	if !strings.HasSuffix(text, suffix) || len(text) > 41<<10 {
		t.Errorf("%d bytes of text end in %q, want the suffix %q", len(text), text[max(0, len(text)-80):], suffix)
	}
}

// TestFloodsAreSurvived has a plugin print without end.
func TestFloodsAreSurvived(t *testing.T) {
	t.Parallel()
	s := connect(t, writeConfig(t, probeBlock("")), revisions[0], nil)
	if got := s.must(t, "probe_print", map[string]any{"n": 20 << 20}); got != "printed" {
		t.Errorf("probe_print = %q", got)
	}
	if got := s.must(t, "probe_text", map[string]any{"n": 2}); got != "xx" {
		t.Errorf("after the flood: probe_text = %q", got)
	}
}
