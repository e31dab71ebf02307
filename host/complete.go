package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// maxCompletion bounds how long a shell waits for names.
const maxCompletion = 2 * time.Second

// completer returns names for a shell, given the words before.
type completer func(n *names, args []string) []cobra.Completion

// complete returns the completion of a command's arguments: of the first by the function. Names
// come from the running host, or from the configuration and from what plugins told at their last
// start. It starts neither a host nor a plugin.
func (a *app) complete(of completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completions(cmd.Context(), of, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeCall completes the name of a tool, and then the names of its arguments.
func (a *app) completeCall(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completions(cmd.Context(), toolNames, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
	return a.completions(cmd.Context(), argumentNames, args, begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeFlag completes the values of a flag.
func (a *app) completeFlag(cmd *cobra.Command, flag string, of completer) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.completions(cmd.Context(), of, args, begun), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // there is no such flag, or it is completed twice
	}
}

// completions returns the names that start as the word does that is begun. It returns them in
// time, or none: a shell cannot show errors.
func (a *app) completions(ctx context.Context, of completer, args []string, begun string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, maxCompletion)
	defer cancel()
	if a.chooseRemote() != nil {
		return nil
	}
	if a.remote != "" {
		return a.remoteCompletions(ctx, of, args, begun)
	}
	stateDir, err := a.stateDir()
	if err != nil {
		return nil
	}
	n := &names{ctx: ctx, stateDir: stateDir}
	defer n.close()
	if answers(ctx, stateDir) {
		n.agent, _ = client.New(client.Options{StateDir: stateDir, Name: "toolhost", Session: "cli"})
		if key, err := auth.ReadKey(filepath.Join(stateDir, auth.ApproverKey)); err == nil {
			n.approver, _ = client.New(client.Options{StateDir: stateDir, Token: key, Name: "toolhost", Session: "cli"})
		}
	}
	path, err := config.Find(a.configPath, nil)
	if err == nil {
		n.cfg, _ = config.Load(path, config.LoadOptions{}) // nil if it has mistakes
	}
	return n.beginning(of, args, begun)
}

// remoteCompletions are completions from a host on another machine.
func (a *app) remoteCompletions(ctx context.Context, of completer, args []string, begun string) []cobra.Completion {
	c, err := a.remoteClient()
	if err != nil {
		return nil
	}
	defer c.Close()
	n := &names{ctx: ctx, agent: c, approver: c}
	return n.beginning(of, args, begun)
}

// beginning returns the names that begin with a text.
func (n *names) beginning(of completer, args []string, begun string) []cobra.Completion {
	return slices.DeleteFunc(of(n, args), func(name cobra.Completion) bool { return !strings.HasPrefix(name, begun) })
}

// names finds names.
type names struct {
	ctx             context.Context //nolint:containedctx // of one completion
	stateDir        string
	agent, approver *client.Client // of the running host; nil if there is none
	cfg             *config.Config // nil if it has mistakes
}

func (n *names) close() {
	for _, c := range []*client.Client{n.agent, n.approver} {
		if c != nil {
			c.Close()
		}
	}
}

// described returns a name with a description for the shell to show.
func described(name, text string) cobra.Completion {
	return cobra.CompletionWithDesc(line(name), head(line(text), 80))
}

// knownTool is a tool as plugins have told it.
type knownTool struct {
	name, description string
	arguments         json.RawMessage
}

// tools returns the tools of the running host, or those of the last starts.
func (n *names) tools() (all []knownTool) {
	if n.agent != nil {
		tools, err := n.agent.Tools(n.ctx)
		if err != nil {
			return nil
		}
		for _, t := range tools {
			all = append(all, knownTool{t.Name, t.Description, t.InputSchema})
		}
		return all
	}
	for _, p := range n.plugins() {
		known, _ := supervisor.KnownTools(n.stateDir, p.Supervisor)
		for _, t := range known.Tools {
			all = append(all, knownTool{t.Name, t.Description, t.InputSchema})
		}
	}
	return all
}

// plugins returns the enabled plugins of the configuration.
func (n *names) plugins() []config.Plugin {
	if n.cfg == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.cfg.Plugins), func(p config.Plugin) bool { return !p.Enabled })
}

func toolNames(n *names, _ []string) (all []cobra.Completion) {
	for _, t := range n.tools() {
		all = append(all, described(t.name, excerpt.Sentence(line(t.description))))
	}
	return all
}

// argumentNames completes KEY= of a call of the tool in args, without those that are given.
func argumentNames(n *names, args []string) (all []cobra.Completion) {
	tools := n.tools()
	i := slices.IndexFunc(tools, func(t knownTool) bool { return t.name == args[0] })
	if i < 0 {
		return nil
	}
	for _, p := range schema.Describe(tools[i].arguments) {
		given := func(arg string) bool { return strings.HasPrefix(arg, p.Name+"=") }
		if strings.ContainsAny(p.Name, ".[") || slices.ContainsFunc(args[1:], given) { // below an argument
			continue
		}
		all = append(all, described(p.Name+"=", p.Type+": "+p.Description))
	}
	return all
}

func pluginNames(n *names, _ []string) (all []cobra.Completion) {
	for _, p := range n.plugins() {
		all = append(all, p.Supervisor.Name)
	}
	return all
}

// openApprovals completes the ids of calls that wait.
func openApprovals(n *names, _ []string) (all []cobra.Completion) {
	if n.approver == nil {
		return nil
	}
	records, err := n.approver.Approvals(n.ctx, client.ApprovalFilter{States: []approval.State{approval.Open}})
	if err != nil {
		return nil
	}
	for _, r := range records {
		all = append(all, described(r.ID, r.User+": "+r.Summary))
	}
	return all
}

// grantIDs completes the ids of grants that have not ended.
func grantIDs(n *names, _ []string) (all []cobra.Completion) {
	if n.approver == nil {
		return nil
	}
	grants, err := n.approver.Grants(n.ctx, false)
	if err != nil {
		return nil
	}
	for _, g := range grants {
		all = append(all, described(g.ID, g.User+": "+g.Covers))
	}
	return all
}

func tokenNames(n *names, _ []string) (all []cobra.Completion) {
	if n.cfg == nil {
		return nil
	}
	all = append(all, described(auth.LocalToken, "the host's own"))
	for _, t := range n.cfg.Tokens {
		all = append(all, described(t.Name, t.Roles.String()+" of "+t.User))
	}
	return all
}

// userNames completes the users that the configuration names, and the local user.
func userNames(n *names, _ []string) (all []cobra.Completion) {
	if n.cfg == nil {
		return nil
	}
	all = []cobra.Completion{auth.LocalUser(n.cfg.LocalUser)}
	for _, t := range n.cfg.Tokens {
		all = append(all, append([]cobra.Completion{t.User}, t.Approves...)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// oneOfNames completes fixed names.
func oneOfNames(all ...cobra.Completion) completer {
	return func(*names, []string) []cobra.Completion { return slices.Clone(all) }
}
