package main

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestLearn: the block has what was reached, whatever the order was, and nothing else; it is valid, also
// if programs chose names and reasons to break out of it.
func TestLearn(t *testing.T) {
	t.Parallel()
	made := func(about, address string) journal.Record {
		return journal.Record{Kind: journal.Connection, Plugin: "p", About: about, Address: address, Status: event.Success}
	}
	refused := func(about, reason string) journal.Record {
		return journal.Record{Kind: journal.Connection, Plugin: "p", About: about, Status: event.Rejected, Error: reason}
	}
	asked := made("asked.example.com:80", "93.184.216.34")
	asked.Approver = "ada"
	cut := refused("cut.example.com:443", "more than 1KiB")
	cut.Address = "93.184.216.34"
	failed := made("failed.example.com:443", "")
	failed.Status, failed.Error = event.Error, "no such host"
	denied := journal.Record{Kind: journal.End, Plugin: "p", Tool: "p_read", Status: event.Error, Code: string(tool.PermissionDenied), Error: "no /x\n}\nplugin \"q\" {"}
	rows := []journal.Record{
		made("both.example.com:443", "93.184.216.34"), made("both.example.com:80", "93.184.216.34"), asked, cut, failed, denied, denied,
		made("db.example.com:5432", "10.1.2.3"), made("10.1.2.4:443", "10.1.2.4"), made("[2001:4860:4860::8888]:853", "2001:4860:4860::8888"),
		refused("both.example.com:443", "User rejected the operation"), refused("no.example.com:443", "no connection to no.example.com:443: a\n}\n\x1b[2J# b"),
		made("(hidden):443", ""), refused("evil\"]\n}:443", "x"),
		{Kind: journal.End, Plugin: "p", About: "not-a-connection.example.com:443"},
	}
	rules := egress.Rules{MaxBytes: tool.MiB}
	seed := soak.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	var first string
	for range 20 {
		random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		u := use{hosts: map[string]*usedHost{}, refused: map[string]*usedHost{}}
		for i := range rows {
			u.add(&rows[i])
		}
		text := u.lesson("p", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), &rules).String()
		if first == "" {
			first = text
		}
		if text != first {
			t.Fatalf("it depends on the order:\n%s", cmp.Diff(first, text))
		}
	}
	const want = `# what plugin "p" used since 2026-01-02T03:04:05Z, by the journal
network {
  mode  = "proxy"
  allow = [
    "10.1.2.3:5432", # the address of db.example.com
    "10.1.2.4", # connections: 1
    "[2001:4860:4860::8888]:853", # connections: 1
    "asked.example.com", # connections: 1, asked
    "both.example.com", # connections: 2
    "cut.example.com", # connections: 1
    "db.example.com:5432", # connections: 1
    "failed.example.com", # connections: 1
  ]
  max_bytes = "1MiB"
  # left out: 2, with a host or port that is a value of env() or file(), which the journal hides
  # refused, and not allowed by this block:
  #   "no.example.com:443", # times: 1; a } \x1b[2J# b
}
# filesystem: not known, because the host does not learn which files a process was refused
# calls that failed with permission_denied, which may want a path in read, write or exec:
#   p_read: no /x } plugin "q" {
`
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	path := writeConfig(t, "plugin \"p\" {\n path = \"/bin/p\"\n tier = \"read_only\"\n sandbox {\n"+first+"}\n}\n")
	cfg, err := config.Load(path, config.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for host, verdict := range map[string]egress.Verdict{
		"both.example.com:80": egress.Allow, "db.example.com:5432": egress.Allow, "10.1.2.4:443": egress.Allow, "[2001:4860:4860::8888]:853": egress.Allow,
		"db.example.com:443": egress.Deny, "example.com:443": egress.Deny, "x.both.example.com:443": egress.Deny, "no.example.com:443": egress.Deny,
		"10.1.2.4:22": egress.Deny, "10.1.2.5:443": egress.Deny, "not-a-connection.example.com:443": egress.Deny, "both.example.com:22": egress.Deny,
	} {
		to, err := egress.ParseTarget(host, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Plugins[0].Supervisor.Network.Decide(to); got.Verdict != verdict {
			t.Errorf("with the block, a connection to %s is %+v, want %s", host, got, verdict)
		}
	}
	if strings.Contains(first, "not-a-connection") {
		t.Error("a row of another kind counts as a connection")
	}
}
