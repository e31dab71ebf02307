package daemon

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// TestUserSecrets: users can set the secrets that plugins may request, and those that only a proxy
// injects.
func TestUserSecrets(t *testing.T) {
	inject := func(names ...string) *egress.Rules {
		rules := new(egress.Rules)
		for _, name := range names {
			rules.Inject = append(rules.Inject, egress.Credential{Secret: name, PerUser: name != "common"})
		}
		return rules
	}
	cfg := &config.Config{Plugins: []config.Plugin{
		{Enabled: true, Supervisor: supervisor.Plugin{Name: "web", UserSecrets: []string{"mine"}, Network: inject("mine", "other", "other", "common")}},
		{Enabled: true, Supervisor: supervisor.Plugin{Name: "git", Network: inject("other")}},
		{Supervisor: supervisor.Plugin{Name: "off", Network: inject("third")}},
		{Enabled: true, Supervisor: supervisor.Plugin{Name: "fs"}},
	}}
	want := []httpapi.UserSecret{
		{Name: "mine", Plugins: []string{"web"}}, {Name: "other", Plugins: []string{"web", "git"}}, {Name: "third"},
	}
	if diff := cmp.Diff(want, userSecrets(cfg)); diff != "" {
		t.Errorf("userSecrets() differs (-want +got):\n%s", diff)
	}
}
