package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestScope reads whose calls share a process of a plugin.
func TestScope(t *testing.T) {
	t.Parallel()
	type scope struct {
		of                       supervisor.Scope
		maxInstances, maxPerUser int
	}
	for _, tt := range []struct {
		block, mistake string
		want           scope
	}{
		{block: ""},
		{block: `isolation_scope = "shared"`},
		{block: `isolation_scope = "user"`, want: scope{of: supervisor.PerUser}},
		{block: "isolation_scope = \"user\"\n max_instances = 200", want: scope{of: supervisor.PerUser, maxInstances: 200}},
		{block: "isolation_scope = \"session\"\n max_instances = 1\n max_per_user = 2", want: scope{supervisor.PerSession, 1, 2}},
		{block: "isolation_scope = \"session\"\n sandbox { isolation = \"strict\" }", want: scope{of: supervisor.PerSession}},
		{block: `isolation_scope = "users"`, mistake: `Expected "shared", "user" or "session" for isolation_scope, not "users". Did you mean "user"?`},
		{block: `max_instances = 3`, mistake: `config.hcl:4: Useless max_instances: It has a meaning only with isolation_scope = "user" or "session".`},
		{block: "isolation_scope = \"user\"\n max_per_user = 3", mistake: `Useless max_per_user: It has a meaning only with isolation_scope = "session".`},
		{block: "isolation_scope = \"user\"\n max_instances = 0", mistake: "Expected a whole number of processes for max_instances, at least 1."},
		{block: "isolation_scope = \"user\"\n max_instances = 10001", mistake: "Expected a whole number of processes for max_instances, at most 10000."},
		{block: "isolation_scope = \"user\"\n start = \"eager\"", mistake: `a process starts at the first call of each user. Remove start, or the scope.`},
		{block: "isolation_scope = \"session\"\n sandbox { isolation = \"basic\" }", mistake: `isolation = "basic" does not keep the processes of one plugin apart`},
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
		p := cfg.Plugins[0].Supervisor
		if got := (scope{p.Scope, p.MaxInstances, p.MaxPerUser}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.block, got, tt.want)
		}
		for _, layer := range []sandbox.Layer{sandbox.LayerPIDNS, sandbox.LayerIPCNS, sandbox.LayerMounts, sandbox.LayerProc} {
			if required := slices.Contains(p.Confinement.Require, layer); required != (p.Scope != supervisor.Shared) {
				t.Errorf("%s: layer %s is required: %v", tt.block, layer, required)
			}
		}
	}
}

// TestInstancesMemory reads the bound on the memory of all processes. Each plugin must find room in it.
func TestInstancesMemory(t *testing.T) {
	t.Parallel()
	plugin := func(memory string) string {
		return "plugin \"fs\" {\n tier = \"read_only\"\n sandbox {\n  limits {\n   memory = \"" + memory + "\"\n  }\n }\n}\n"
	}
	for text, mistake := range map[string]string{
		"instances_memory = \"8GiB\"\n":                       "",
		"instances_memory = \"512MiB\"\n":                     "", // the default of limits.memory
		plugin("9GiB"):                                        "",
		plugin("8GiB") + "instances_memory = \"8GiB\"\n":      "",
		"instances_memory = \"8\"\n":                          "Not a size: Expected a size such as \"8GiB\" for instances_memory",
		"instances_memory = \"511MiB\"\n":                     `config.hcl:2: Too little memory: A process of plugin "p" (`,
		plugin("9GiB") + "instances_memory = \"8GiB\"\n":      `may have 9GiB (limits.memory), so none would start. Raise instances_memory, or lower that limit.`,
		plugin("unlimited") + "instances_memory = \"8GiB\"\n": `Unlimited plugin: The processes of plugin "fs" (`,
		strings.Replace(plugin("9GiB"), "tier", "enabled = false\n tier", 1) + "instances_memory = \"8GiB\"\n": "",
	} {
		cfg, err := load(t, text)
		switch {
		case mistake != "" && (err == nil || !strings.Contains(err.Error(), mistake)):
			t.Errorf("%s: Load() = %v, want %q", text, err, mistake)
		case mistake == "" && err != nil:
			t.Errorf("%s: Load() = %v", text, err)
		case mistake == "" && strings.Contains(text, "8GiB\"\n") && strings.Contains(text, "instances") && cfg.InstancesMemory != 8*tool.GiB:
			t.Errorf("%s: the bound is %v", text, cfg.InstancesMemory)
		}
	}
}
