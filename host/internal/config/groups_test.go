package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestGroups reads the groups of users.
func TestGroups(t *testing.T) {
	t.Parallel()
	set := auth.Toolset{Name: "coding", Tools: []string{"read_*"}}
	const toolset = "toolset \"coding\" {\n tools = [\"read_*\"]\n}\n"
	rule := func(when string) string {
		return "policy {\n rule \"r\" {\n tools = [\"*\"]\n when = " + when + "\n verdict = \"deny\"\n }\n}\n"
	}
	for _, tt := range []struct {
		text, mistake string
		want          auth.Groups
	}{
		{text: "group \"Dev Team\" {\n users = [\"ada\", \"bob\"]\n}", want: auth.Groups{{Name: "Dev Team", Users: []string{"ada", "bob"}}}},
		{
			text: toolset + "group \"dev\" {\n users = [\"*\"]\n toolset = \"coding\"\n actions_per_hour = 7\n concurrent_calls = \"unlimited\"\n}",
			want: auth.Groups{{Name: "dev", Users: []string{"*"}, Toolset: &set, Limits: auth.Limits{ActionsPerHour: 7, ConcurrentCalls: -1}}},
		},
		{text: "group \"dev\" {\n}\n" + rule(`contains(caller.groups, "dev")`), want: auth.Groups{{Name: "dev"}}},
		{text: "group \"dev\" {\n}\n" + rule(`contains(caller.groups, "deb")`), mistake: `caller.groups is never "deb". Expected "dev". Did you mean "dev"?`},
		{text: rule(`contains(caller.groups, "dev")`), mistake: `There is no block group "dev", so no caller is in it.`},
		{text: "group \"dev\" {\n}\ngroup \"dev\" {\n}", mistake: "Duplicate group"},
		{text: "group \"\" {\n}", mistake: "Invalid group name"},
		{text: "group \"dev\" {\n users = [\"ada\", \"ada\"]\n}", mistake: "Duplicate entry"},
		{text: "group \"dev\" {\n users = [\" ada\"]\n}", mistake: "Invalid user"},
		{text: "group \"dev\" {\n toolset = \"codign\"\n}\n" + toolset, mistake: `There is no block toolset "codign". Did you mean "coding"?`},
		{text: "group \"dev\" {\n results = \"64MiB\"\n}", want: auth.Groups{{Name: "dev", Limits: auth.Limits{Results: 64 * tool.MiB}}}},
		{text: "group \"dev\" {\n results = \"257MiB\"\n}", mistake: `Expected a size from "1MiB" to "256MiB" (results.quota) for results, not "257MiB".`},
		{text: "results {\n quota = \"1GiB\"\n}\ngroup \"dev\" {\n results = \"257MiB\"\n}", want: auth.Groups{{Name: "dev", Limits: auth.Limits{Results: 257 * tool.MiB}}}},
		{text: "group \"dev\" {\n network_per_day = \"1GiB\"\n}", want: auth.Groups{{Name: "dev", Limits: auth.Limits{NetworkPerDay: tool.GiB}}}},
		{text: "group \"dev\" {\n network_per_day = \"1KiB\"\n}", mistake: `Expected a size such as "64MiB" of at least 1MiB for network_per_day, not "1KiB".`},
		{text: "group \"dev\" {\n concurrent_calls = 0\n}", mistake: `Expected a whole number or "unlimited" for concurrent_calls, at least 1.`},
	} {
		cfg, err := load(t, tt.text)
		if tt.mistake != "" {
			if err == nil || !strings.Contains(err.Error(), tt.mistake) {
				t.Errorf("%s: Load() = %v, want %q", tt.text, err, tt.mistake)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(cfg.Groups, tt.want) {
			t.Errorf("%s: %+v, %v, want %+v", tt.text, cfg, err, tt.want)
		}
	}
}

// TestRuleTestsKnowGroups: the user of a test is in the configured groups.
func TestRuleTestsKnowGroups(t *testing.T) {
	t.Parallel()
	cfg, err := load(t, "group \"dev\" {\n users = [\"ada\"]\n}\npolicy {\n rule \"r\" {\n tools = [\"*\"]\n verdict = \"deny\"\n"+
		" test \"a\" {\n user = \"ada\"\n expect = \"deny\"\n }\n test \"b\" {\n user = \"bob\"\n expect = \"deny\"\n }\n }\n}")
	if err != nil {
		t.Fatal(err)
	}
	tests := cfg.Policy.Rules[0].Tests
	if len(tests[0].Groups) != 1 || len(tests[1].Groups) != 0 {
		t.Errorf("%+v, want that only ada is in a group", tests)
	}
}
