package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

func (a *app) networkCommand() *cobra.Command {
	var q client.NetworkQuery
	var since string
	cmd := &cobra.Command{
		Use:   "network",
		Short: "List the connections of plugins to other machines",
		Long: `List the connections of plugins to other machines: the open ones, and those that have
ended or were refused, from the journal. It knows plugins with mode = "proxy" in their
network block only; nobody watches the network of others.`,
		Example: `  toolhost network
  toolhost network --plugin web --since 1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.Since, _, err = period(since, ""); err != nil {
				return err
			}
			var all httpapi.NetworkList
			err = a.asReader(cmd.Context(), func(c *client.Client) (err error) {
				all, err = c.Network(cmd.Context(), q)
				return err
			})
			if err == nil && len(all.Open)+len(all.Ended) == 0 {
				err = a.foundNone(cmd.Context(), "there are no connections")
			}
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(all)
			}
			return a.printNetwork(all)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.Plugin, "plugin", "", "only this plugin")
	flags.StringVar(&q.User, "user", "", "only this user")
	flags.StringVar(&q.Call, "call", "", "only the connections of this call")
	flags.StringVar(&since, "since", "", "only connections since this time: RFC 3339, or an age such as 24h")
	flags.IntVar(&q.Limit, "limit", 20, "at most this many that have ended; up to 1000")
	a.completeFlag(cmd, "plugin", pluginNames)
	a.completeFlag(cmd, "user", userNames)
	return cmd
}

func (a *app) printNetwork(all httpapi.NetworkList) error {
	if len(all.Open)+len(all.Ended) == 0 {
		_, err := fmt.Fprint(a.stdout, "no connections\n")
		return err
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "TIME\tPLUGIN\tUSER\tHOST\tSTATE\tSENT\tRECEIVED\tDECIDED BY\tCALL\n")
	row := func(at time.Time, plugin, user, host, state string, sent, received int64, by, call string) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%v\t%v\t%s\t%s\n", at.Local().Format(time.DateTime), line(plugin), orDash(line(user)), line(host), state,
			tool.ByteSize(sent), tool.ByteSize(received), line(by), orDash(call))
	}
	for _, c := range all.Open {
		row(c.Opened, c.Plugin, c.User, c.Target().String(), "open", c.Sent, c.Received, cmp.Or(c.Approver, c.Approval, c.Rule), c.Call)
	}
	for _, r := range all.Ended {
		state := map[string]string{"success": "closed", "rejected": "refused", "error": "failed"}[r.Status]
		row(r.Time, r.Plugin, r.User, r.About, state, r.Sent, r.Received, cmp.Or(r.Approver, r.Approval, r.Rule), r.Call)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range all.Ended {
		if r.Error != "" {
			fmt.Fprintf(a.stdout, "\nthe latest problem: %s: %s\n", line(r.Plugin), line(r.Error))
			break
		}
	}
	return nil
}

// explainConnection prints what the configuration says about a connection of a plugin.
func (a *app) explainConnection(args []string) error {
	if len(args) != 2 {
		return &usageError{errors.New("expected a plugin and a host: " + a.command("explain --network PLUGIN HOST[:PORT]"))}
	}
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	to, err := egress.ParseTarget(args[1], 443)
	if err != nil {
		return &usageError{err}
	}
	i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Supervisor.Name == args[0] })
	if i < 0 {
		return fmt.Errorf("the configuration has no plugin %s", line(args[0]))
	}
	d := connectionOf(&cfg.Plugins[i], to)
	if a.json {
		return a.printJSON(struct {
			Plugin string `json:"plugin"`
			Host   string `json:"host"`
			egress.Decision
		}{args[0], to.String(), d})
	}
	text := map[egress.Verdict]string{
		egress.Allow: "is made unasked", egress.Ask: "is asked about, unless a grant covers it", egress.Deny: "is refused",
	}[d.Verdict]
	fmt.Fprintf(a.stdout, "a connection of %s to %s %s\n  by: %s\n", line(args[0]), to, text, line(d.Rule))
	if d.Reason != "" {
		fmt.Fprintf(a.stdout, "  because %s\n", line(d.Reason))
	}
	return nil
}

// connectionOf returns the decision about a connection of a plugin.
func connectionOf(p *config.Plugin, to egress.Target) egress.Decision {
	switch p.Supervisor.Confinement.Network {
	case sandbox.NetworkHost:
		return egress.Decision{Verdict: egress.Allow, Rule: `mode = "host": the plugin has the network of the host, which nobody watches`}
	case sandbox.NetworkProxy:
		return p.Supervisor.Network.Decide(to)
	case sandbox.NetworkNone:
	}
	return egress.Decision{Verdict: egress.Deny, Rule: `mode = "none"`, Reason: "the plugin has no network"}
}
