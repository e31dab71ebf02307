package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/client"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/sdk/tool"
)

// newToken is what `toolhost token new --json` prints.
type newToken struct {
	Token string `json:"token"`
	Block string `json:"block"`
}

func (a *app) tokenCommand() *cobra.Command {
	var user string
	var roles, approves []string
	var elicitation bool
	create := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token, and print it with the block that lets it count",
		Long: `Make a token, and print it with the block that lets it count once it stands in
the configuration. The token is shown this once; the configuration holds its
digest only.`,
		Example: `  toolhost token new ci-agent --user ci
  toolhost token new claude-code --elicitation
  toolhost token new lead --user ann --role approver,admin --approves ci,bob`,
		Args: oneArgument("a NAME for the token"),
		RunE: func(_ *cobra.Command, args []string) error {
			block, err := tokenBlock(args[0], auth.LocalUser(user), roles, approves, elicitation)
			if err != nil {
				return &usageError{err}
			}
			secret, digest := auth.NewToken()
			block = strings.Replace(block, "DIGEST", digest, 1)
			if a.json {
				return a.printJSON(newToken{secret, block})
			}
			fmt.Fprintf(a.stdout, "%s\n", secret)
			_, err = fmt.Fprintf(a.stderr, "\nIt is shown this once. To let it count, put this into the configuration,\nthen: %s\n\nauth { # the one that is there, if there is one\n%s}\n", a.command("reload"), block)
			return err
		},
	}
	flags := create.Flags()
	flags.StringVar(&user, "user", "", "whose calls it makes, or decides (default: the local user)")
	flags.StringSliceVar(&roles, "role", []string{"agent"}, "agent, or approver and admin")
	flags.StringSliceVar(&approves, "approves", nil, "for an approver: whose calls besides its own user's")
	flags.BoolVar(&elicitation, "elicitation", false, "for an agent: let its MCP client ask its user to approve its calls")
	token := &cobra.Command{
		Use:   "token",
		Short: "Make and list tokens of programs and people",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	token.AddCommand(create, a.listTokensCommand())
	return token
}

func (a *app) listTokensCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens: whose they are, what they allow, when they expire and were last used",
		Long: `List the tokens: whose they are, what they allow, when they expire, and when they
were last used since the host started. To take one back, remove its block from the
configuration, then: toolhost reload`,
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
				table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprint(table, "NAME\tUSER\tROLES\tEXPIRES\tLAST USE\n")
				for _, t := range tokens {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", line(t.Name), line(t.User), strings.Join(t.Roles, ", "), timeOrDash(t.Expires), timeOrDash(t.LastUsed))
				}
				return table.Flush()
			})
		},
	}
}

// timeOrDash is a time for people, or a dash.
func timeOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// tokenBlock is the block of a token, with DIGEST in the place of its digest.
func tokenBlock(name, user string, roles, approves []string, elicitation bool) (string, error) {
	parsed, err := auth.ParseRoles(roles)
	switch {
	case err != nil:
		return "", err
	case len(approves) > 0 && !parsed.Has(auth.Approver):
		return "", errors.New("--approves is for a token with --role approver")
	case elicitation && !parsed.Has(auth.Agent):
		return "", errors.New("--elicitation is for a token with --role agent")
	case !tool.ValidPluginName(name):
		return "", fmt.Errorf("%q cannot be a token's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -", name)
	}
	if err := config.CheckUser(user); err != nil {
		return "", err
	}
	for i, name := range approves {
		if err := config.CheckUser(name); err != nil {
			return "", fmt.Errorf("--approves: %w", err)
		}
		if name == user || slices.Contains(approves[:i], name) {
			return "", fmt.Errorf("--approves names %q twice, or the token's own user, whose calls it decides anyway", name)
		}
	}
	width := len("sha256") // of the longest name in the block
	switch {
	case elicitation:
		width = len("elicitation")
	case len(approves) > 0:
		width = len("approves")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  token %q {\n    %-*s = \"DIGEST\"\n    %-*s = %q\n    %-*s = %s\n", name,
		width, "sha256", width, "user", user, width, "roles", quoted(parsed.Names()))
	if len(approves) > 0 {
		fmt.Fprintf(&b, "    %-*s = %s\n", width, "approves", quoted(approves))
	}
	if elicitation {
		b.WriteString("    elicitation = true\n")
	}
	b.WriteString("  }\n")
	return b.String(), nil
}

// quoted is a list in the configuration's language.
func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = fmt.Sprintf("%q", w)
	}
	return "[" + strings.Join(list, ", ") + "]"
}
