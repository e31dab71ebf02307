package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

func (a *app) consoleCommand() *cobra.Command {
	var printOnly, logOutAll bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Print a link that logs in a browser to the host's console",
		Long: `Print a link that logs in a browser to the host's console, which shows waiting calls and
decides them. The link opens once, within two minutes. The browser then is the caller
of the credential: over the control socket approver.key, with --url the stored token,
which needs the role approver or admin. It is logged out after 12 hours, after an hour
without use, and when the credential ends.`,
		Example: `  toolhost console
  xdg-open "$(toolhost console --print)"
  toolhost console --log-out-all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if logOutAll && printOnly {
				return &usageError{errors.New("--log-out-all excludes --print: it prints no link")}
			}
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				if logOutAll {
					ended, err := c.EndLogins(cmd.Context())
					if err != nil {
						return err
					}
					return a.printEnded(ended)
				}
				link, err := c.LoginLink(cmd.Context())
				if err != nil {
					return err
				}
				return a.printLink(link, printOnly)
			})
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the link only, for scripts")
	cmd.Flags().BoolVar(&logOutAll, "log-out-all", false, "log out every browser of this credential")
	return cmd
}

func (a *app) printLink(link httpapi.LoginLink, only bool) error {
	if a.json {
		return a.printJSON(link)
	}
	text := link.URL + "\n"
	if !only {
		text += "opens once, until " + link.Expires.Local().Format(time.TimeOnly) + "\n"
	}
	_, err := fmt.Fprint(a.stdout, text)
	return err
}

func (a *app) printEnded(ended httpapi.EndedLogins) error {
	if a.json {
		return a.printJSON(ended)
	}
	_, err := fmt.Fprintf(a.stdout, "logged out browsers: %d\n", ended.Ended)
	return err
}
