package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
)

func (a *app) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff NAME [TOOL...]",
		Short: "Show how a plugin's tools differ from the accepted ones",
		Long: `Show how the definitions of a plugin's tools differ from those that were accepted:
+ new, ~ changed, - gone. A definition is everything that a model and the policy see of
a tool. Without a running host, the command starts one for itself.`,
		Example: `  toolhost plugins diff NAME
  toolhost plugins diff NAME --json`,
		Args:              a.pluginAndTools,
		ValidArgsFunction: a.complete(pluginNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				d, err := c.Definitions(cmd.Context(), args[0], args[1:]...)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(d)
				}
				text, err := definitionsText(d)
				if err != nil {
					return err
				}
				fmt.Fprint(a.stdout, text)
				if differs(d) {
					fmt.Fprintf(a.stdout, "\nto accept exactly this: %s\n", a.command("plugins accept "+strings.Join(args, " ")+" --digest "+d.Digest))
				}
				return nil
			})
		},
	}
}

func (a *app) acceptCommand() *cobra.Command {
	digest, yes := "", false
	cmd := &cobra.Command{
		Use:   "accept NAME [TOOL...]",
		Short: "Accept the definitions of a plugin's tools, so that they are offered",
		Long: `Accept the definitions of a plugin's tools as they are now: those of the tools that
you name, or all that differ. The host writes them to the lock file beside the
configuration, and offers the tools at once. From then on, every tool of the plugin
needs to be accepted, and a tool that changes is not offered until you accept it again.

On a terminal, the command shows the definitions and asks. Elsewhere it needs --digest,
which plugins diff prints, so that what you read is what you accept.`,
		Example: `  toolhost plugins accept NAME
  toolhost plugins accept NAME --digest sha256:...`,
		Args:              a.pluginAndTools,
		ValidArgsFunction: a.complete(pluginNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				return a.accept(cmd.Context(), c, args[0], args[1:], digest, yes)
			})
		},
	}
	cmd.Flags().StringVar(&digest, "digest", "", "accept only the definitions that have this `DIGEST`")
	cmd.Flags().BoolVar(&yes, "yes", false, "accept whatever the plugin publishes now, unseen")
	cmd.MarkFlagsMutuallyExclusive("digest", "yes")
	return cmd
}

// accept accepts definitions that a person has seen.
func (a *app) accept(ctx context.Context, c *client.Client, plugin string, tools []string, digest string, yes bool) error {
	shown, err := c.Definitions(ctx, plugin, tools...)
	if err != nil {
		return err
	}
	switch {
	case digest != "" || !differs(shown): // the host compares the digest
	case yes:
		digest = shown.Digest
	case !a.onTerminal():
		return &hintError{
			errors.New("without a terminal, accept needs --digest; nothing was accepted"),
			a.command("plugins diff "+strings.Join(append([]string{plugin}, tools...), " ")) + " shows the definitions and their digest",
		}
	default:
		text, err := definitionsText(shown)
		if err != nil {
			return err
		}
		if err := a.askYes(ctx, text, "Accept these definitions?", "nothing was accepted"); err != nil {
			return err
		}
		digest = shown.Digest
	}
	accepted := shown
	if digest != "" {
		if accepted, err = c.AcceptDefinitions(ctx, plugin, digest, tools...); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(accepted)
	}
	if len(accepted.Tools) == 0 {
		fmt.Fprintf(a.stdout, "%s: nothing to accept\n", accepted.Plugin)
	}
	for _, t := range accepted.Tools {
		what := "accepted"
		if t.State == catalog.DefinitionGone {
			what = "removed from the lock file"
		}
		fmt.Fprintf(a.stdout, "%s: tool %s %s\n", accepted.Plugin, t.Tool, what)
	}
	return nil
}

// pluginAndTools requires the name of a plugin, and allows names of tools.
func (a *app) pluginAndTools(cmd *cobra.Command, args []string) error {
	return a.oneArgument("the NAME of a plugin", "plugins list")(cmd, args[:min(len(args), 1)])
}

// differs reports whether a tool differs from what was accepted.
func differs(d httpapi.Definitions) bool {
	for _, t := range d.Tools {
		if t.State != catalog.DefinitionAccepted {
			return true
		}
	}
	return false
}

// definitionsText shows how definitions differ from the accepted ones.
func definitionsText(d httpapi.Definitions) (string, error) {
	var b strings.Builder
	switch {
	case !d.Locked:
		fmt.Fprintf(&b, "%s is not locked: its tools are offered as they are. Once some are accepted, all need to be.\n", d.Plugin)
	case !differs(d):
		fmt.Fprintf(&b, "%s: every tool is as it was accepted\n", d.Plugin)
	}
	for _, t := range d.Tools {
		accepted, err := decoded(t.Accepted)
		if err != nil {
			return "", err
		}
		published, err := decoded(t.Published)
		if err != nil {
			return "", err
		}
		name := line(t.Tool)
		switch t.State {
		case catalog.DefinitionNew:
			fmt.Fprintf(&b, "\n+ %s is new\n%s", name, nested(published.Text()))
		case catalog.DefinitionChanged:
			fmt.Fprintf(&b, "\n~ %s has changed\n%s", name, nested(lock.Diff(accepted, published)))
		case catalog.DefinitionGone:
			fmt.Fprintf(&b, "\n- %s is gone: the plugin no longer has it\n", name)
		case catalog.DefinitionAccepted:
			fmt.Fprintf(&b, "\n  %s is as it was accepted\n%s", name, nested(published.Text()))
		}
	}
	return b.String(), nil
}

func decoded(text []byte) (lock.Definition, error) {
	if len(text) == 0 {
		return lock.Definition{}, nil
	}
	return lock.Decode(text)
}

// nested returns lines that cannot be mistaken for those of this command.
func nested(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// printPending says how many tools of a plugin wait to be accepted, and what to type.
func (a *app) printPending(p httpapi.Plugin) {
	if pending := p.Pending(); pending > 0 {
		fmt.Fprintf(a.stdout, "\n%s: %s\n", p.Name, a.pendingLine(p.Name, pending))
	}
}

func (a *app) pendingLine(plugin string, pending int) string {
	return httpapi.PendingText(plugin, pending) + ": " + a.command("plugins diff "+plugin)
}

// lockNotes describes the tools of a configuration that wait to be accepted or are gone, as far as they
// are known from earlier starts.
func (a *app) lockNotes(cfg *config.Config) (notes []string, err error) {
	state, err := daemon.LockState(cfg, version)
	if err != nil {
		return nil, err
	}
	if state.Foreign {
		notes = append(notes, cfg.Lock+" is not used: it was changed where plugins could change it, and not by the host; check it, then run "+a.command("reload")+", which says how to use it")
	}
	for _, p := range state.Plugins {
		if p.Pending > 0 {
			notes = append(notes, a.pendingLine(p.Name, p.Pending))
		}
		if len(p.Gone) > 0 {
			notes = append(notes, fmt.Sprintf("accepted tools that plugin %q no longer has: %s", p.Name, strings.Join(p.Gone, ", ")))
		}
	}
	return notes, nil
}
