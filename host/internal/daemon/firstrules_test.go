package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/config"
)

// ruled adds a rule to a configuration that names a tool which the plugin does not
// have.
func ruled(t *testing.T, cfg *config.Config) *config.Config {
	t.Helper()
	path := cfg.Files[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, []byte("policy {\n  rule \"no\" {\n    tools   = [\"chnage\"]\n    verdict = \"deny\"\n  }\n}\n")...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg, err = config.Load(path, config.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestFirstStartChecksRules starts a host for the first time with a rule about a tool
// that does not exist: it is refused as a reload would refuse it.
func TestFirstStartChecksRules(t *testing.T) {
	d := build(t, ruled(t, load(t, "")))
	if err := d.Start(t.Context()); err == nil || !strings.Contains(err.Error(), `there is no tool "chnage"; did you mean "change"?`) {
		t.Errorf("Start = %v, want that there is no such tool", err)
	}
}

// TestLatePluginsRulesAreChecked has the tools of a plugin become known only after
// the host has started: what is wrong with a rule is told by readyz then.
func TestLatePluginsRulesAreChecked(t *testing.T) {
	cfg := ruled(t, load(t, ""))
	program := filepath.Join(filepath.Dir(cfg.Files[0]), "bin", "greeter")
	if err := os.Rename(program, program+".good"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := start(t, cfg)
	if health, err := d.approver.Readiness(t.Context()); err != nil || health.Status != "ready" || len(health.Problems) > 0 {
		t.Fatalf("before the tools are known: Readiness = %+v, %v", health, err)
	}
	if err := os.Rename(program+".good", program); err != nil {
		t.Fatal(err)
	}
	if _, err := d.approver.RestartPlugin(t.Context(), "greeter"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		health, err := d.approver.Readiness(ctx)
		if err != nil {
			t.Fatalf("readyz does not tell of the rule: %v", err)
		}
		if len(health.Problems) > 0 {
			if !strings.Contains(health.Problems[0], "rules of the policy do not fit the tools") {
				t.Errorf("Readiness = %+v", health)
			}
			return
		}
	}
}
