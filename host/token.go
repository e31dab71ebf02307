package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/sdk/tool"
)

// newToken is what `toolhost token new --json` prints.
type newToken struct {
	Token string `json:"token"`
	Block string `json:"block"`
}

// blockOf holds the content of a token's block.
type blockOf struct {
	user, account, expires string
	roles, approves        []string
	elicitation            bool
}

func (a *app) tokenCommand() *cobra.Command {
	var of blockOf
	create := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a token and print it with its configuration block",
		Long: `Create a token and print it with its configuration block. The token is valid once the
block is in the configuration. It is shown only once; the configuration holds only its
digest.`,
		Example: `  toolhost token new ci-agent --user ci
  toolhost token new ci-agent --user ci --account ci --expires 90d
  toolhost token new claude-code --elicitation
  toolhost token new lead --user ann --role approver,admin --approves ci,bob`,
		Args: a.oneArgument("a NAME for the token", ""),
		RunE: func(_ *cobra.Command, args []string) error {
			of.user = auth.LocalUser(of.user)
			block, err := tokenBlock(args[0], of)
			if err != nil {
				return &usageError{err}
			}
			secret, digest := auth.NewToken()
			block = strings.Replace(block, "DIGEST", digest, 1)
			if a.json {
				return a.printJSON(newToken{secret, block})
			}
			fmt.Fprintf(a.stdout, "%s\n", secret)
			_, err = fmt.Fprintf(a.stderr, "\nThe token is shown only once. To make it valid, add this to the configuration,\nthen: %s\n\nauth { # or add it to the existing auth block\n%s}\n", a.command("reload"), block)
			return err
		},
	}
	flags := create.Flags()
	flags.StringVar(&of.user, "user", "", "the user whose calls it makes or decides (default: the local user)")
	flags.StringSliceVar(&of.roles, "role", []string{"agent"}, "agent, approver and admin, or monitor")
	flags.StringSliceVar(&of.approves, "approves", nil, "for an approver: other users whose calls it decides")
	flags.BoolVar(&of.elicitation, "elicitation", false, "for an agent: let its MCP client ask its user for approval")
	flags.StringVar(&of.expires, "expires", "", "when it expires: a duration such as 90d, or a date such as 2027-01-01 (default: never)")
	flags.StringVar(&of.account, "account", "", "the account of this machine that may use it: a name, a number, or any (default: the host's)")
	a.completeFlag(create, "user", userNames)
	a.completeFlag(create, "role", oneOfNames("agent", "approver", "admin", "monitor"))
	a.completeFlag(create, "approves", userNames)
	return group("token", "Create, list, rotate and revoke tokens", create, a.listTokensCommand(), a.rotateTokenCommand(), a.revokeTokenCommand())
}

func (a *app) listTokensCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List tokens with their user, roles, expiry and last use",
		Long: `List tokens with their user, roles, expiry and last use since the host started. A
revoked token stays in the list while its block is in the configuration.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				tokens, err := c.Tokens(cmd.Context())
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(tokens)
				}
				table := newTable(a.stdout)
				fmt.Fprint(table, "NAME\tUSER\tROLES\tACCOUNT\tEXPIRES\tREVOKED\tLAST USE\n")
				for _, t := range tokens {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", line(t.Name), line(t.User), strings.Join(t.Roles, ", "),
						cmp.Or(line(t.Account), "the host's"), timeOrDash(t.Expires), timeOrDash(t.Revoked), timeOrDash(t.LastUsed))
				}
				return table.Flush()
			})
		},
	}
}

// timeOrDash formats a time for people, or returns a dash.
func timeOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// tokenBlock returns the block of a token, with DIGEST in place of the digest.
func tokenBlock(name string, of blockOf) (string, error) {
	parsed, err := auth.ParseRoles(of.roles)
	switch {
	case err != nil:
		return "", err
	case len(of.approves) > 0 && !parsed.Has(auth.Approver):
		return "", errors.New("--approves needs --role approver")
	case of.elicitation && !parsed.Has(auth.Agent):
		return "", errors.New("--elicitation needs --role agent")
	case !tool.ValidPluginName(name):
		return "", fmt.Errorf("%q cannot be a token's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -", name)
	}
	if err := config.CheckUser(of.user); err != nil {
		return "", err
	}
	for i, name := range of.approves {
		if err := config.CheckUser(name); err != nil {
			return "", fmt.Errorf("--approves: %w", err)
		}
		if name == of.user || slices.Contains(of.approves[:i], name) {
			return "", fmt.Errorf("--approves names %q twice, or the token's own user, whose calls it decides anyway", name)
		}
	}
	lines := [][2]string{{"sha256", `"DIGEST"`}, {"user", strconv.Quote(of.user)}, {"roles", quoted(parsed.Names())}}
	if len(of.approves) > 0 {
		lines = append(lines, [2]string{"approves", quoted(of.approves)})
	}
	if of.elicitation {
		lines = append(lines, [2]string{"elicitation", "true"})
	}
	if of.account != "" {
		if _, err := config.LookupAccount(of.account); err != nil {
			return "", fmt.Errorf("--account: %w", err)
		}
		lines = append(lines, [2]string{"account", strconv.Quote(of.account)})
	}
	if of.expires != "" {
		at, err := config.ParseExpires(of.expires, time.Now())
		if err != nil {
			return "", fmt.Errorf("--expires: %w", err)
		}
		lines = append(lines, [2]string{"expires", strconv.Quote(at.UTC().Format(time.RFC3339))})
	}
	width := 0 // of the longest name in the block
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  token %q {\n", name)
	for _, l := range lines {
		fmt.Fprintf(&b, "    %-*s = %s\n", width, l[0], l[1])
	}
	b.WriteString("  }\n")
	return b.String(), nil
}

// quoted returns a list in the configuration's syntax.
func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = fmt.Sprintf("%q", w)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// rotatedToken is what `toolhost token rotate --json` prints.
type rotatedToken struct {
	Token  string `json:"token"`
	SHA256 string `json:"sha256"`
	// Revoked is when the old token stops being valid.
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
		Args:              a.oneArgument("the NAME of a token", "token list"),
		ValidArgsFunction: a.complete(tokenNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asRevoker(cmd.Context(), func(c *client.Client) error {
				revoked, err := c.RevokeToken(cmd.Context(), args[0], grace)
				if err != nil {
					return err
				}
				return a.printRotated(revoked, grace)
			})
		},
	}
	rotate.Flags().DurationVar(&grace, "grace", 0, "how long the old token stays valid, at most 720h")
	return rotate
}

// printRotated prints what takes the place of a token, which was revoked: a new secret, which it
// makes, except for the host's own token.
func (a *app) printRotated(revoked httpapi.RevokedToken, grace time.Duration) error {
	if revoked.Name == auth.LocalToken {
		return a.printRevoked(revoked, grace)
	}
	secret, digest := auth.NewToken()
	if a.json {
		return a.printJSON(rotatedToken{secret, digest, revoked.Revoked})
	}
	fmt.Fprintln(a.stdout, secret)
	_, err := fmt.Fprintf(a.stderr, `
The token is shown only once. The old token %s.
To make the new one valid, replace the sha256 in the block of token %q,
then: %s

    sha256 = %q
`, whenRevoked(revoked, grace), revoked.Name, a.command("reload"), digest)
	return err
}

func (a *app) revokeTokenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token immediately and permanently",
		Long: `Revoke a token immediately and permanently. The host refuses its requests, cancels its
calls and ends its streams within 15 seconds. The command does not change the
configuration: the token's block has no effect anymore and can be removed.

The host replaces its own token, local, immediately.`,
		Example:           `  toolhost token revoke ci-agent`,
		Args:              a.oneArgument("the NAME of a token", "token list"),
		ValidArgsFunction: a.complete(tokenNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asRevoker(cmd.Context(), func(c *client.Client) error {
				revoked, err := c.RevokeToken(cmd.Context(), args[0], 0)
				if err != nil {
					return err
				}
				return a.printRevoked(revoked, 0)
			})
		},
	}
}

// printRevoked prints that a token was revoked and, for the host's own token, where the new
// one is.
func (a *app) printRevoked(revoked httpapi.RevokedToken, grace time.Duration) error {
	if a.json {
		return a.printJSON(revoked)
	}
	if _, err := fmt.Fprintf(a.stdout, "the token %s %s\n", line(revoked.Name), whenRevoked(revoked, grace)); err != nil {
		return err
	}
	if revoked.Name != auth.LocalToken {
		return nil
	}
	if a.remote != "" {
		_, err := fmt.Fprintf(a.stdout, "the new one is in %s of the host's state directory; reconnect clients that used it\n", auth.AgentKey)
		return err
	}
	stateDir, err := a.stateDir()
	if err == nil {
		_, err = fmt.Fprintf(a.stdout, "the new one is in %s; reconnect clients that used it\n", filepath.Join(stateDir, auth.AgentKey))
	}
	return err
}

// whenRevoked returns when a token stops being valid.
func whenRevoked(revoked httpapi.RevokedToken, grace time.Duration) string {
	if grace == 0 {
		return "is now refused"
	}
	return "stays valid until " + timeOrDash(revoked.Revoked)
}
