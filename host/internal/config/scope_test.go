package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
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
