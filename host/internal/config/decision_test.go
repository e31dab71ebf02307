package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// load loads a configuration of one file with a plugin p and further blocks.
func load(t *testing.T, blocks string) (*config.Config, error) {
	t.Helper()
	dir := write(t, map[string]string{"config.hcl": "workspace = \".\"\n" + blocks + "\nplugin \"p\" {\n tier = \"read_only\"\n}\n"})
	return config.Load(dir, config.LoadOptions{LookupEnv: environment(map[string]string{"ADDRESS": "127.0.0.9:80"})})
}

// TestScalars: the defaults of missing blocks, and the values of given ones.
func TestScalars(t *testing.T) {
	type scalars struct {
		Listen         string
		Grace          time.Duration
		Mode           policy.Mode
		ActionsPerHour int
		Approvals      config.Approvals
		Results        config.Results
		Journal        config.Journal
		ToolSearch     int
	}
	const (
		minutes = 10 * time.Minute
		days    = 24 * time.Hour
	)
	defaults := scalars{
		"127.0.0.1:7780", 10 * time.Second, policy.Supervised, 600,
		config.Approvals{Timeout: minutes, Patience: 45 * time.Second},
		config.Results{TTL: time.Hour, Quota: 256 * tool.MiB},
		config.Journal{Keep: 90 * days, MaxSize: tool.GiB},
		100,
	}
	with := func(change func(*scalars)) scalars {
		s := defaults
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name, blocks string
		want         scalars
	}{
		{"nothing is said", "", defaults},
		{"empty blocks", "server {}\nauth {}\npolicy {}\napprovals {}\nresults {}\njournal {}", defaults},
		{"null is nothing", "server { listen = null }\npolicy { actions_per_hour = null }", defaults},
		{"no HTTP", `server { listen = "" }`, with(func(s *scalars) { s.Listen = "" })},
		{"a long grace", "server {\n grace = \"10m\"\n}", with(func(s *scalars) { s.Grace = minutes })},
		{"no grace", `server { grace = "0s" }`, with(func(s *scalars) { s.Grace = 0 })},
		{"short lists", `server { tool_search_above = 1 }`, with(func(s *scalars) { s.ToolSearch = 1 })},
		{"read only", `policy { mode = "read_only" }`, with(func(s *scalars) { s.Mode = policy.ReadOnly })},
		{"unlimited actions", `policy { actions_per_hour = "unlimited" }`, with(func(s *scalars) { s.ActionsPerHour = 0 })},
		{"actions in words", `policy { actions_per_hour = "12" }`, with(func(s *scalars) { s.ActionsPerHour = 12 })},
		{"a time-out below the default patience", `approvals { timeout = "10s" }`, with(func(s *scalars) {
			s.Approvals = config.Approvals{Timeout: 10 * time.Second, Patience: 10 * time.Second}
		})},
		{"no patience", `approvals { patience = "0s" }`, with(func(s *scalars) { s.Approvals.Patience = 0 })},
		{"no patience, by its present name", `server { patience = "0s" }`, with(func(s *scalars) { s.Approvals.Patience = 0 })},
		{"patience and a time-out", "server {\n patience = \"5m\"\n}\napprovals {\n timeout = \"6m\"\n}", with(func(s *scalars) {
			s.Approvals = config.Approvals{Timeout: 6 * time.Minute, Patience: 5 * time.Minute}
		})},
		{"patience up to the time-out", "approvals {\n timeout = \"1m\"\n patience = \"1m\"\n}", with(func(s *scalars) {
			s.Approvals = config.Approvals{Timeout: time.Minute, Patience: time.Minute}
		})},
		{"the longest", "approvals {\n timeout = \"24h\"\n patience = \"10m\"\n}", with(func(s *scalars) {
			s.Approvals = config.Approvals{Timeout: days, Patience: minutes}
		})},
		{"short results", `results { ttl = "1m" }`, with(func(s *scalars) { s.Results.TTL = time.Minute })},
		{"the most results", "results {\n ttl = \"7d\"\n quota = \"16GiB\"\n}", with(func(s *scalars) {
			s.Results = config.Results{TTL: 7 * days, Quota: 16 * tool.GiB}
		})},
		{"the fewest results", `results { quota = "1MiB" }`, with(func(s *scalars) { s.Results.Quota = tool.MiB })},
		{"keep all", "journal {\n keep = \"unlimited\"\n max_size = \"unlimited\"\n}", with(func(s *scalars) { s.Journal = config.Journal{} })},
		{"keep little", "journal {\n keep = \"24h\"\n max_size = \"1MiB\"\n}", with(func(s *scalars) {
			s.Journal = config.Journal{Keep: days, MaxSize: tool.MiB}
		})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := load(t, tt.blocks)
			if err != nil {
				t.Fatal(err)
			}
			got := scalars{cfg.Listen, cfg.Grace, cfg.Policy.Mode, cfg.ActionsPerHour, cfg.Approvals, cfg.Results, cfg.Journal, cfg.ToolSearchAbove}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
			if said := cfg.Policy.ModePlace != ""; said != strings.Contains(tt.blocks, "mode") {
				t.Errorf("ModePlace = %q with %q", cfg.Policy.ModePlace, tt.blocks)
			}
		})
	}
}

// TestListen: without TLS, HTTP is for this machine alone.
func TestListen(t *testing.T) {
	const refused = "Not a loopback address"
	for _, tt := range []struct {
		listen, want, mistake string
	}{
		{`"127.0.0.1:7780"`, "127.0.0.1:7780", ""},
		{`"127.9.9.9:1"`, "127.9.9.9:1", ""},
		{`"127.0.0.1:0"`, "127.0.0.1:0", ""},
		{`"127.0.0.1:65535"`, "127.0.0.1:65535", ""},
		{`"127.0.0.1:00080"`, "127.0.0.1:80", ""},
		{`"[::1]:7780"`, "[::1]:7780", ""},
		{`"localhost:7780"`, "127.0.0.1:7780", ""},
		{`env("ADDRESS")`, "127.0.0.9:80", ""},
		{`":7780"`, "", refused},
		{`"0.0.0.0:7780"`, "", refused},
		{`"[::]:7780"`, "", refused},
		{`"[::ffff:10.0.0.1]:7780"`, "", refused},
		{`"10.0.0.1:7780"`, "", refused},
		{`"localhost.example.com:7780"`, "", "Not an address"},
		{`"2130706433:7780"`, "", "Not an address"},
		{`"127.0.0.1"`, "", "Not an address"},
		{`"::1:7780"`, "", "Not an address"},
		{`"7780"`, "", "Not an address"},
		{`" "`, "", "Not an address"},
		{`"127.0.0.1:65536"`, "", "Not a port"},
		{`"127.0.0.1:-1"`, "", "Not a port"},
		{`"127.0.0.1:http"`, "", "Not a port"},
		{`"127.0.0.1:"`, "", "Not a port"},
		{`7780`, "", "Wrong type"},
	} {
		t.Run(tt.listen, func(t *testing.T) {
			cfg, err := load(t, "server {\n listen = "+tt.listen+"\n}")
			if tt.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), "config.hcl:3: "+tt.mistake) {
					t.Errorf("Load with listen = %s: error %v, want %q in line 3", tt.listen, err, tt.mistake)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Listen != tt.want {
				t.Errorf("Load with listen = %s: Listen = %q, want %q", tt.listen, cfg.Listen, tt.want)
			}
		})
	}
}

func TestRate(t *testing.T) {
	for _, tt := range []struct {
		rate string
		want catalog.Rate // zero: a mistake
	}{
		{`"2/s"`, catalog.Rate{Calls: 2, Per: time.Second}},
		{`"30/m"`, catalog.Rate{Calls: 30, Per: time.Minute}},
		{`"1000000/h"`, catalog.Rate{Calls: 1_000_000, Per: time.Hour}},
		{`"1000001/h"`, catalog.Rate{}},
		{`"99999999999999999999/h"`, catalog.Rate{}},
		{`"0/h"`, catalog.Rate{}},
		{`"-1/h"`, catalog.Rate{}},
		{`"1.5/h"`, catalog.Rate{}},
		{`"30"`, catalog.Rate{}},
		{`"30/d"`, catalog.Rate{}},
		{`"30/m "`, catalog.Rate{}},
		{`""`, catalog.Rate{}},
	} {
		t.Run(tt.rate, func(t *testing.T) {
			cfg, err := load(t, "plugin \"q\" {\n tier = \"read_only\"\n tool \"x\" {\n rate = "+tt.rate+"\n }\n}")
			if tt.want == (catalog.Rate{}) {
				if err == nil || !strings.Contains(err.Error(), "config.hcl:5: ") {
					t.Errorf("Load with rate = %s: error %v, want a mistake in line 5", tt.rate, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.Plugins[0].Catalog.Tools[0].Rate; got != tt.want {
				t.Errorf("Load with rate = %s: Rate = %+v, want %+v", tt.rate, got, tt.want)
			}
		})
	}
}

// TestUser: an approver reads exactly the name.
func TestUser(t *testing.T) {
	for _, tt := range []struct {
		user string // as it is written
		want bool
	}{
		{`ada`, true},
		{`Ada Lovelace`, true},
		{`CORP\\ada`, true},
		{`ada@example.com`, true},
		{`žofie`, true},
		{strings.Repeat("a", 128), true},
		{strings.Repeat("a", 129), false},
		{``, false},
		{` `, false},
		{` ada`, false},
		{`ada\t`, false},
		{`a\nda`, false},
		{`ada\u001b[2J`, false},
		{`ada\u202e`, false},
		{`a\u200bda`, false},
	} {
		for _, argument := range []string{
			"user = \"%s\"\n roles = [\"agent\"]",
			"roles = [\"approver\"]\n user = \"someone\"\n approves = [\"%s\"]",
		} {
			text := "auth {\n token \"t\" {\n sha256 = \"" + strings.Repeat("0a", 32) + "\"\n " + strings.ReplaceAll(argument, "%s", tt.user) + "\n }\n}"
			cfg, err := load(t, text)
			if !tt.want {
				if err == nil || !strings.Contains(err.Error(), "Invalid user") {
					t.Errorf("Load of\n%s\nerror %v, want that the user is not valid", text, err)
				}
				continue
			}
			if err != nil || len(cfg.Tokens) != 1 {
				t.Errorf("Load of\n%s\nerror %v, want one token", text, err)
			}
		}
	}
}

func TestCacheTTL(t *testing.T) {
	for _, tt := range []struct {
		ttl  string
		want time.Duration // 0: a mistake
	}{
		{`"30s"`, 30 * time.Second}, {`"1h"`, time.Hour}, {`"0s"`, -1}, {`"61m"`, 0}, {`"-1s"`, 0}, {`"soon"`, 0}, {"30", 0},
	} {
		t.Run(tt.ttl, func(t *testing.T) {
			cfg, err := load(t, "plugin \"q\" {\n tier = \"read_only\"\n tool \"x\" {\n cache_ttl = "+tt.ttl+"\n }\n}")
			if tt.want == 0 {
				if err == nil {
					t.Errorf("cache_ttl = %s is no mistake", tt.ttl)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.Plugins[0].Catalog.Tools[0].CacheTTL; got != tt.want {
				t.Errorf("cache_ttl = %s is %v, want %v", tt.ttl, got, tt.want)
			}
		})
	}
}
