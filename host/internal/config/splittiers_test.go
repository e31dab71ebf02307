package config_test

import (
	"strings"
	"testing"
)

// TestSplitTiers reads whether read_only calls have a process of their own.
func TestSplitTiers(t *testing.T) {
	t.Parallel()
	const readOnly = "\n sandbox {\n  filesystem {\n   workspace = \"ro\"\n  }\n }"
	const proxy = "\n sandbox {\n  network {\n   mode = \"proxy\"\n  }\n }"
	for _, tt := range []struct {
		block, mistake, warning string
		split, network          bool
	}{
		{block: ""},
		{block: "split_tiers = false"},
		{block: "split_tiers = true", split: true},
		{block: "split_tiers = \"true\"", split: true}, // as env() gives it
		{block: "split_tiers = true" + proxy, split: true},
		{block: "split_tiers = \"network\"" + proxy, split: true, network: true},
		{block: "split_tiers = \"network\"", split: true, network: true, warning: "the plugin has no network"},
		{block: "split_tiers = true" + readOnly, split: true, warning: "split_tiers has little effect"},
		{block: "split_tiers = true\n isolation_scope = \"session\"\n max_per_user = 2", split: true},
		{block: "split_tiers = \"proxy\"", mistake: `Wrong type: Expected true, false or "network" for split_tiers, not a string.`},
		{block: "split_tiers = true\n sandbox {\n  isolation = \"off\"\n }", mistake: `config.hcl:4: Nothing to prove it: isolation = "off" cannot keep a process from changing anything`},
		{block: "split_tiers = true\n sandbox {\n  isolation = \"basic\"\n }", mistake: "Nothing to prove it"},
		{block: "split_tiers = true\n sandbox {\n  isolation = \"isolated\"\n  on_missing = \"warn\"\n }", split: true},
	} {
		cfg, err := load(t, "plugin \"fs\" {\n tier = \"read_only\"\n "+tt.block+"\n}")
		if tt.mistake != "" {
			if err == nil || !strings.Contains(err.Error(), tt.mistake) {
				t.Errorf("%s: Load() = %v, want %q", tt.block, err, tt.mistake)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: Load() = %v", tt.block, err)
			continue
		}
		p := cfg.Plugins[0]
		if p.Supervisor.SplitTiers != tt.split || p.Catalog.SplitTiers != tt.split || p.Supervisor.ReaderNetwork != tt.network {
			t.Errorf("%s: the options are %+v and %+v", tt.block, p.Supervisor, p.Catalog)
		}
		var warnings []string
		for _, w := range cfg.Warnings {
			warnings = append(warnings, w.Text)
		}
		if all := strings.Join(warnings, "\n"); tt.warning == "" && strings.Contains(all, "split_tiers") || !strings.Contains(all, tt.warning) {
			t.Errorf("%s: the warnings are %q, want %q", tt.block, all, tt.warning)
		}
	}
}
