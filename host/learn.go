package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/guard"
	"github.com/toolhost/toolhost/sdk/tool"
)

func (a *app) sandboxCommand() *cobra.Command {
	return group("sandbox", "Find out what a plugin needs", a.learnCommand())
}

func (a *app) learnCommand() *cobra.Command {
	var q journal.Query
	var since string
	cmd := &cobra.Command{
		Use:   "learn PLUGIN",
		Short: "Print the smallest network block for what a plugin has used",
		Long: `Print the smallest network block with which the same calls run again without a question,
from the connections in the journal. What was refused is a comment. Set mode = "proxy"
and ask = true in the network block, use the plugin, and put the block that learn prints
in its place.

The journal does not know which files a process was refused: learn lists the calls
that failed with permission_denied instead.`,
		Example: `  toolhost sandbox learn shell --since 1h
  toolhost sandbox learn web --session s1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.complete(pluginNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if q.Since, _, err = period(since, ""); err != nil {
				return err
			}
			q.Plugin = args[0]
			return a.learn(cmd.Context(), q)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.User, "user", "", "only this user")
	flags.StringVar(&q.Session, "session", "", "only this session")
	flags.StringVar(&q.Call, "call", "", "only this call")
	flags.StringVar(&since, "since", "", "only since this time: RFC 3339, or an age such as 24h")
	a.completeFlag(cmd, "user", userNames)
	return cmd
}

// learn prints what a plugin has used.
func (a *app) learn(ctx context.Context, q journal.Query) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Supervisor.Name == q.Plugin })
	switch {
	case i < 0:
		return fmt.Errorf("the configuration has no plugin %s", line(q.Plugin))
	case cfg.Plugins[i].Supervisor.Confinement.Network != sandbox.NetworkProxy:
		return &hintError{
			fmt.Errorf("nobody watches the network of plugin %s", line(q.Plugin)),
			`write mode = "proxy" and ask = true in its network block, use it, and run this command again`,
		}
	}
	u := use{hosts: map[string]*usedHost{}, refused: map[string]*usedHost{}}
	err = a.asReader(ctx, func(c *client.Client) error { return u.read(ctx, c, q) })
	if err == nil && u.empty() {
		err = a.foundNone(ctx, "there are no connections")
	}
	if err != nil {
		return err
	}
	found := u.lesson(q.Plugin, q.Since, cfg.Plugins[i].Supervisor.Network)
	if a.json {
		return a.printJSON(found)
	}
	_, err = a.stdout.Write([]byte(found.String()))
	return err
}

// use is what a plugin has used and was refused, by destination.
type use struct {
	hosts, refused map[string]*usedHost
	denied         map[string]bool // calls that failed with permission_denied
	hidden         int             // connections whose host the journal hides
}

// usedHost is one destination.
type usedHost struct {
	to          egress.Target
	connections int
	asked       bool       // a person or a grant allowed one
	private     netip.Addr // that was reached
	reason      string     // why it was refused at last
}

func (u *use) empty() bool { return len(u.hosts)+len(u.refused)+len(u.denied)+u.hidden == 0 }

// read reads the journal, the latest rows first, and the connections that are still open.
func (u *use) read(ctx context.Context, c *client.Client, q journal.Query) error {
	for q.Limit = 1000; ; {
		rows, err := c.Journal(ctx, q)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			u.add(&rows[i])
		}
		q.Before = rows[len(rows)-1].Seq
	}
	live, err := c.Network(ctx, client.NetworkQuery{Plugin: q.Plugin, User: q.User, Call: q.Call, Since: q.Since, Limit: 1})
	for _, c := range live.Open {
		if q.Session == "" || q.Session == c.Session {
			u.add(&journal.Record{Kind: journal.Connection, About: c.Target().String(), Address: c.Address, Approval: c.Approval, Approver: c.Approver, Status: event.Success})
		}
	}
	return err
}

// add adds a row. One that was cut off because of what it carried was allowed before.
func (u *use) add(r *journal.Record) {
	if r.Kind == journal.End && r.Code == string(tool.PermissionDenied) && r.Status == event.Error {
		if u.denied == nil {
			u.denied = map[string]bool{}
		}
		u.denied[line(r.Tool+": "+r.Error)] = true
	}
	to, err := egress.ParseTarget(r.About, 0)
	switch {
	case r.Kind != journal.Connection:
		return
	case err != nil:
		u.hidden++
		return
	}
	all := u.hosts
	if r.Status == event.Rejected && r.Address == "" {
		all = u.refused
	}
	h := all[to.String()]
	if h == nil {
		h = &usedHost{to: to, reason: r.Error}
		all[to.String()] = h
	}
	h.connections++
	h.asked = h.asked || r.Approval != "" || r.Approver != ""
	if ip, err := netip.ParseAddr(r.Address); err == nil && guard.Public(ip) != nil {
		h.private = ip
	}
}

// lesson is what `sandbox learn` prints.
type lesson struct {
	Plugin string     `json:"plugin"`
	Since  *time.Time `json:"since,omitempty"`
	// Allow are the entries for the network block, and Refused the destinations that none contains.
	Allow   []lessonEntry `json:"allow"`
	Refused []lessonEntry `json:"refused"`
	// Hidden counts the connections that are left out, because the journal hides their hosts.
	Hidden int `json:"hidden,omitempty"`
	// Inject are the hosts of inject blocks, and MaxBytes is the bound, to be kept.
	Inject   []string      `json:"inject,omitempty"`
	MaxBytes tool.ByteSize `json:"max_bytes,omitempty"`
	// Denied are the calls that failed with permission_denied.
	Denied []string `json:"denied"`
}

// lessonEntry is an entry of a list, or a destination that was refused.
type lessonEntry struct {
	Host        string `json:"host"`
	Connections int    `json:"connections"`
	Note        string `json:"note,omitempty"`
}

// lesson returns the smallest block for the use: what is not in it was not used. It is the same for the
// same use, whatever its order was.
func (u *use) lesson(plugin string, since time.Time, rules *egress.Rules) lesson {
	l := lesson{Plugin: plugin, Hidden: u.hidden, Allow: []lessonEntry{}, Refused: []lessonEntry{}, Denied: slices.AppendSeq([]string{}, maps.Keys(u.denied))}
	if !since.IsZero() {
		since = since.UTC().Truncate(time.Second)
		l.Since = &since
	}
	entries := map[string]*lessonEntry{}
	entry := func(text, note string, connections int) {
		e := entries[text]
		if e == nil {
			e = &lessonEntry{Host: text, Note: note}
			entries[text] = e
		}
		e.Connections += connections
		if note == "asked" { // on one of its ports
			e.Note = note
		}
	}
	for _, key := range slices.Sorted(maps.Keys(u.hosts)) {
		h := u.hosts[key]
		note := ""
		if h.asked {
			note = "asked"
		}
		entry(h.entry(h.to.Host), note, h.connections)
		if h.private.IsValid() && h.private.String() != h.to.Host {
			entry(h.entry(h.private.String()), "the address of "+h.to.Host, 0)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(entries)) {
		l.Allow = append(l.Allow, *entries[text])
	}
	for _, key := range slices.Sorted(maps.Keys(u.refused)) {
		if h := u.refused[key]; entries[h.entry(h.to.Host)] == nil {
			l.Refused = append(l.Refused, lessonEntry{Host: key, Connections: h.connections, Note: strings.TrimPrefix(line(h.reason), "no connection to "+key+": ")})
		}
	}
	for _, c := range rules.Inject {
		l.Inject = append(l.Inject, c.Host.String())
	}
	l.MaxBytes = rules.MaxBytes
	slices.Sort(l.Denied)
	return l
}

// entry returns the entry of a list for a host on the destination's port. Without a port it is the one
// for HTTP and TLS, whose names are checked; with one, it would allow any protocol.
func (h *usedHost) entry(host string) string {
	if h.to.Port == 80 || h.to.Port == 443 {
		return host
	}
	return egress.Target{Host: host, Port: h.to.Port}.String()
}

// String returns the block, as it is written in a configuration.
func (l lesson) String() string {
	var b strings.Builder
	since := ""
	if l.Since != nil {
		since = " since " + l.Since.Format(time.RFC3339)
	}
	fmt.Fprintf(&b, "# what plugin %q used%s, by the journal\n", l.Plugin, since)
	b.WriteString("network {\n")
	if len(l.Allow) == 0 {
		b.WriteString("  mode = \"none\"\n")
	} else {
		b.WriteString("  mode  = \"proxy\"\n  allow = [\n")
		for _, e := range l.Allow {
			note := fmt.Sprintf("connections: %d", e.Connections)
			switch {
			case e.Connections == 0:
				note = e.Note
			case e.Note != "":
				note += ", " + e.Note
			}
			fmt.Fprintf(&b, "    %q, # %s\n", e.Host, note)
		}
		b.WriteString("  ]\n")
		if l.MaxBytes > 0 {
			fmt.Fprintf(&b, "  max_bytes = %q\n", l.MaxBytes.String())
		}
	}
	for _, host := range l.Inject {
		fmt.Fprintf(&b, "  # keep the block inject %q, if it is used\n", host)
	}
	if l.Hidden > 0 {
		fmt.Fprintf(&b, "  # left out: %d, with a host or port that is a value of env() or file(), which the journal hides\n", l.Hidden)
	}
	if len(l.Refused) > 0 {
		b.WriteString("  # refused, and not allowed by this block:\n")
	}
	for _, e := range l.Refused {
		fmt.Fprintf(&b, "  #   %q, # times: %d; %s\n", e.Host, e.Connections, e.Note)
	}
	b.WriteString("}\n# filesystem: not known, because the host does not learn which files a process was refused\n")
	if len(l.Denied) > 0 {
		b.WriteString("# calls that failed with permission_denied, which may want a path in read, write or exec:\n")
	}
	for _, text := range l.Denied[:min(len(l.Denied), 20)] {
		fmt.Fprintf(&b, "#   %s\n", text)
	}
	return b.String()
}
