package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/secrets"
)

func (a *app) secretCommand() *cobra.Command {
	user := ""
	list := &cobra.Command{
		Use:   "list",
		Short: "List the secrets of a user, without their values",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := []httpapi.UserSecret{} // never null in JSON
			err := a.asApprover(cmd.Context(), func(c *client.Client) (err error) {
				all, err = c.Secrets(cmd.Context(), user)
				return err
			})
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(all)
			case len(all) == 0:
				_, err = fmt.Fprintln(a.stderr, `no plugin may request a secret that users set: secret blocks with for = "user"`)
				return err
			}
			return a.printSecrets(all)
		},
	}
	set := &cobra.Command{
		Use:   "set NAME",
		Short: "Set your value of a secret, for tools that your calls use",
		Long: `Set your value of a secret: plugins that the configuration allows may request it while
one of your calls runs. The value is asked for, or read from standard input, where a
newline at its end is dropped. It is never shown again.`,
		Example: `  toolhost secret set github
  gh auth token | toolhost secret set github`,
		Args:              a.oneArgument("the name of a secret", "secret list"),
		ValidArgsFunction: a.complete(secretNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := a.readSecret(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.changeSecret(cmd.Context(), args[0], "set", func(c *client.Client) error { return c.SetSecret(cmd.Context(), user, args[0], value) })
		},
	}
	remove := &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove your value of a secret",
		Example:           `  toolhost secret remove github`,
		Args:              a.oneArgument("the name of a secret", "secret list"),
		ValidArgsFunction: a.complete(secretNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeSecret(cmd.Context(), args[0], "removed", func(c *client.Client) error { return c.RemoveSecret(cmd.Context(), user, args[0]) })
		},
	}
	for _, cmd := range []*cobra.Command{list, set, remove} {
		cmd.Flags().StringVar(&user, "user", "", "the user; an admin or an approver of the user may name another one (default yours)")
		a.completeFlag(cmd, "user", userNames)
	}
	return group("secret", "Set the secrets that tools use for your calls", list, set, remove)
}

// secretChanged is what `toolhost secret set --json` and `remove --json` print.
type secretChanged struct {
	Name  string `json:"name"`
	State string `json:"state"` // set or removed
}

func (a *app) changeSecret(ctx context.Context, name, state string, change func(*client.Client) error) error {
	if err := a.asApprover(ctx, change); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(secretChanged{name, state})
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s\n", state, line(name))
	return err
}

// readSecret reads a value from the terminal, without showing it, or from standard input.
func (a *app) readSecret(ctx context.Context, name string) (string, error) {
	if a.onTerminal() {
		value, err := a.askSecret(ctx, "value of "+line(name)+": ")
		return strings.TrimSuffix(value, "\n"), err
	}
	text, err := io.ReadAll(io.LimitReader(a.stdin, secrets.MaxValue+2))
	if err != nil {
		return "", fmt.Errorf("read the value: %w", err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		return "", &usageError{errors.New("there is no value: type it on a terminal, or pass it on standard input")}
	}
	return value, nil
}

func (a *app) printSecrets(all []httpapi.UserSecret) error {
	table := newTable(a.stdout)
	fmt.Fprint(table, "NAME\tSET\tPLUGINS\n")
	for _, s := range all {
		set := "no"
		if !s.Set.IsZero() {
			set = s.Set.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", line(s.Name), set, orDash(strings.Join(s.Plugins, ", ")))
	}
	return table.Flush()
}

func secretNames(n *names, _ []string) (all []cobra.Completion) {
	if n.approver == nil {
		return nil
	}
	known, err := n.approver.Secrets(n.ctx, "")
	if err != nil {
		return nil
	}
	for _, s := range known {
		all = append(all, described(s.Name, strings.Join(s.Plugins, ", ")))
	}
	return all
}
