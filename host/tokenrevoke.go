package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// localToken is what the host's own token is called, which stands in no configuration.
const localToken = "local"

// rotatedToken is what `toolhost token rotate --json` prints.
type rotatedToken struct {
	Token  string `json:"token"`
	SHA256 string `json:"sha256"`
	// Revoked is when the former token stops to count.
	Revoked time.Time `json:"revoked"`
}

func (a *app) rotateTokenCommand() *cobra.Command {
	var grace time.Duration
	rotate := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Replace a token and revoke the old one",
		Long: `Create a new token in place of another, and revoke the old one immediately or after
--grace. The new token is valid once its sha256 replaces the old one in the
configuration. The command prints the line; it does not change the configuration.

The host's own token, local, is not in the configuration: the host writes a new
agent.token to its state directory, which is valid immediately.`,
		Example: `  toolhost token rotate ci-agent
  toolhost token rotate ci-agent --grace 1h`,
		Args: oneArgument("the NAME of a token; toolhost token list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			secret, digest := auth.NewToken()
			var revoked httpapi.RevokedToken
			err := a.asApprover(cmd.Context(), func(c *client.Client) (err error) {
				revoked, err = c.RevokeToken(cmd.Context(), args[0], grace)
				return err
			})
			if err != nil {
				return err
			}
			if args[0] == localToken {
				return a.printRevoked(revoked, grace)
			}
			if a.json {
				return a.printJSON(rotatedToken{secret, digest, revoked.Revoked})
			}
			fmt.Fprintln(a.stdout, secret)
			_, err = fmt.Fprintf(a.stderr, `
The token is shown only once. The old token %s.
To make the new one valid, replace the sha256 in the block of token %q,
then: %s

    sha256 = %q
`, whenRevoked(revoked, grace), args[0], a.command("reload"), digest)
			return err
		},
	}
	rotate.Flags().DurationVar(&grace, "grace", 0, "how long the old token stays valid, at most 720h")
	return rotate
}

func (a *app) revokeTokenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token immediately and permanently",
		Long: `Revoke a token immediately and permanently. The host refuses its requests, cancels its
calls and ends its streams within 15 seconds. The command does not change the
configuration: the token's block has no effect anymore and can be removed.

The host replaces its own token, local, immediately.`,
		Example: `  toolhost token revoke ci-agent`,
		Args:    oneArgument("the NAME of a token; toolhost token list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				revoked, err := c.RevokeToken(cmd.Context(), args[0], 0)
				if err != nil {
					return err
				}
				return a.printRevoked(revoked, 0)
			})
		},
	}
}

// printRevoked tells that a token was revoked, and what became of the host's own.
func (a *app) printRevoked(revoked httpapi.RevokedToken, grace time.Duration) error {
	if a.json {
		return a.printJSON(revoked)
	}
	if _, err := fmt.Fprintf(a.stdout, "the token %s %s\n", line(revoked.Name), whenRevoked(revoked, grace)); err != nil {
		return err
	}
	if revoked.Name != localToken {
		return nil
	}
	stateDir, err := a.stateDir()
	if err == nil {
		_, err = fmt.Fprintf(a.stdout, "the new one is in %s; reconnect clients that used it\n", filepath.Join(stateDir, auth.AgentKey))
	}
	return err
}

// whenRevoked says when a token stops to count.
func whenRevoked(revoked httpapi.RevokedToken, grace time.Duration) string {
	if grace == 0 {
		return "is now refused"
	}
	return "stays valid until " + timeOrDash(revoked.Revoked)
}
