package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
)

// TestComparisons: comparisons that always have the same result are mistakes, and others are not.
func TestComparisons(t *testing.T) {
	for _, tt := range []struct {
		when, want string // the mistake; "" means none
	}{
		{`caller.user == 5`, `caller.user is a string, and a string never equals a number. Write "5".`},
		{`true != session`, `session is a string, and a string never equals a boolean. Write "true".`},
		{`caller.roles == "agent"`, `a list never equals a string. Write contains(caller.roles, ...).`},
		{`contains(caller.roles, "agnet")`, `caller.roles is never "agnet". Expected "agent", "approver" or "admin". Did you mean "agent"?`},
		{`tool.tier == "readonly"`, `tool.tier is never "readonly"`},
		{`contains(["read_only", "priv"], tool.tier)`, `tool.tier is never "priv"`},
		{`tool.plugin != "b"`, `tool.plugin is never "b". Expected "toolhost" or "a".`},
		{`anytrue([for c in commands : c.risk == "hi"])`, `c.risk is never "hi"`},
		{`anytrue([for u in urls : u.port == 443])`, `Write "443".`},
		{`caller.user + 1 > 2`, `caller.user is a string, and this operator needs a number.`},
		{`!caller.client`, `caller.client is a string, and this operator needs true or false.`},
		{`caller.user && true`, `this operator needs true or false.`},

		{`caller.user == "5" && session != ""`, ""},
		{`contains(caller.roles, "admin") || contains(["privileged"], tool.tier)`, ""},
		{`tool.plugin == "a" || tool.plugin == "toolhost"`, ""},
		{`anytrue([for u in urls : u.port > 1024])`, ""}, // a text that spells a number
		{`anytrue([for c in commands : c.risk == "high" && c.argv[0] == "rm"])`, ""},
		{`anytrue([for tool in args.list : tool == 5])`, ""},
		{`anytrue([for i, p in paths : i == 0 && p.rel == "x"])`, ""},
		{`args.n == 5 && args.n + 1 > 2 && args.s == "x"`, ""},
		{`caller.user == null`, ""},
		{`caller.user == args.user`, ""},
	} {
		_, err := loadAlone(t, "workspace = \"ws\"\nauth {\nlocal_user = \"5\"\n}\nplugin \"a\" {\ntier = \"read_only\"\n}\npolicy {\nrule \"r\" {\ntools = [\"*\"]\nverdict = \"deny\"\nwhen = "+tt.when+"\n}\n}\n")
		bad, ok := errors.AsType[*config.Error](err)
		if ok != (tt.want != "") || ok && !strings.Contains(bad.Error(), tt.want) || ok && bad.Mistakes[0].Line != 12 {
			t.Errorf("when = %s: %v, want %q in line 12", tt.when, err, tt.want)
		}
	}
}
