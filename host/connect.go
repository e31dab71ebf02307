package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/clientfile"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// connection is what `toolhost connect --print --json` prints.
type connection struct {
	Client string `json:"client"`
	Name   string `json:"name"`
	// Where says where the text belongs.
	Where string `json:"where"`
	Text  string `json:"text"`
}

func (a *app) connectCommand() *cobra.Command {
	name, o := "toolhost", connectOptions{}
	cmd := &cobra.Command{
		Use:   "connect CLIENT",
		Short: "Connect an MCP client to this host",
		Long: `Connect an MCP client to this host: ` + either(clientNames()) + `.
The command shows what changes in the client's own file, asks, and writes the file, with
a backup beside it. Comments and other settings stay. Without a terminal, --yes is
required. With --print, standard output holds only the text to paste, and no file
changes; the client json has no file, so its text is always printed. The client starts
"toolhost mcp", which connects to the running host over its control socket or becomes
the host itself; no token leaves the host. With --http, the client connects to the
configured address, where "toolhost serve" must run, and the file or the text holds the
agents' token: keep it secret. With --token-file, the client uses the token in that
file; a token with elicitation lets the client ask its own user for approval. With
--managed, this host is the only MCP server that Claude Code may use on this machine.`,
		Example: `  toolhost connect claude-code
  toolhost connect cursor --print
  toolhost connect claude-code --token-file ~/.config/toolhost/claude-code.token
  toolhost connect vscode --http`,
		Args:      namesAClient,
		ValidArgs: clientNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !tool.ValidPluginName(name) {
				return &usageError{fmt.Errorf("--name: %q cannot be a server's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -", name)}
			}
			switch {
			case o.managed && args[0] != "claude-code":
				return &usageError{fmt.Errorf("--managed: only claude-code has a file of managed servers, not %s", args[0])}
			case o.managed && o.http:
				return &usageError{errors.New("--managed and --http exclude each other: every account can read the managed file, which would hold the token")}
			}
			o.again = sameFlags(cmd.Flags())
			return a.connect(cmd.Context(), args[0], name, o)
		},
	}
	cmd.Flags().BoolVar(&o.http, "http", false, "connect over HTTP instead of starting a process")
	cmd.Flags().StringVar(&o.tokenFile, "token-file", "", "a file that holds the token to use instead of the agents' token")
	cmd.Flags().BoolVar(&o.print, "print", false, "print the text and change no file")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "write the file without asking")
	cmd.Flags().BoolVar(&o.managed, "managed", false, "write Claude Code's managed-mcp.json, with this host as the only server")
	cmd.Flags().StringVar(&name, "name", name, "the client's name for this host")
	return cmd
}

// namesAClient requires the name of one known client.
func namesAClient(_ *cobra.Command, args []string) error {
	names := clientNames()
	switch {
	case len(args) == 0:
		return fmt.Errorf("expected a CLIENT: %s", either(names))
	case len(args) > 1:
		return fmt.Errorf("expected one CLIENT, not %d", len(args))
	case slices.Contains(names, args[0]):
		return nil
	}
	err := fmt.Errorf("unknown client %q, expected %s", args[0], either(names))
	if near := schema.Nearest(args[0], names); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, near[0])
	}
	return err
}

// connectOptions are the flags of `toolhost connect`.
type connectOptions struct {
	http, print, yes, managed bool
	tokenFile                 string
	again                     string // the same flags, for a command to type
}

// sameFlags returns the flags that were given, except those that hints add.
func sameFlags(flags *pflag.FlagSet) string {
	var text strings.Builder
	flags.Visit(func(f *pflag.Flag) {
		switch {
		case slices.Contains([]string{"config", "print", "yes"}, f.Name), f.Value.String() == f.DefValue:
		case f.Value.Type() == "bool":
			text.WriteString(" --" + f.Name)
		default:
			text.WriteString(" --" + f.Name + " " + shellQuoted(f.Value.String()))
		}
	})
	return text.String()
}

// connect writes or prints the configuration of a client.
func (a *app) connect(ctx context.Context, client, name string, o connectOptions) error {
	reach := a.overStdio
	if o.http {
		stdio := "connect " + client + strings.Replace(o.again, " --http", "", 1)
		reach = func(tokenFile string) (clientfile.Server, error) { return a.overHTTP(ctx, tokenFile, stdio) }
	}
	server, err := reach(o.tokenFile)
	if err != nil {
		return err
	}
	known := clientfile.Clients()[slices.Index(clientNames(), client)] // namesAClient has checked it
	if o.managed {
		known = clientfile.Managed("/")
	}
	if known.Target != nil && !o.print {
		return a.writeClient(ctx, known, name, server, o)
	}
	text, err := pasted(known.Paste(name, server))
	if err != nil {
		return fmt.Errorf("connect %s: %w", client, err)
	}
	where := known.Where
	if o.http {
		where = cmp.Or(known.HTTP, where)
	}
	if a.json {
		return a.printJSON(connection{Client: client, Name: name, Where: where, Text: text})
	}
	if isTerminal(a.stderr) {
		fmt.Fprintf(a.stderr, "%s:\n", where)
	}
	_, err = fmt.Fprint(a.stdout, text, "\n")
	return err
}

// pasted returns the text of what a person pastes.
func pasted(p clientfile.Paste) (string, error) {
	switch {
	case p.TOML != "":
		return p.TOML, nil
	case p.Command == nil:
		return indented(p.JSON)
	}
	var words []string
	for _, word := range p.Command {
		words = append(words, shellWord(word))
	}
	return strings.Join(words, " "), nil
}

// clientNames returns the names of the clients that connect knows.
func clientNames() (names []string) {
	for _, c := range clientfile.Clients() {
		names = append(names, c.Name)
	}
	return names
}

// overHTTP returns the address of the running host, or the configured one. stdio is the command
// that does without.
func (a *app) overHTTP(ctx context.Context, tokenFile, stdio string) (clientfile.Server, error) {
	cfg, err := a.loadConfig()
	if err != nil {
		return clientfile.Server{}, err
	}
	stdio = "a client can start the host itself: " + a.command(stdio)
	if cfg.Listen == "" {
		return clientfile.Server{}, &hintError{errors.New(`this host is not reached over HTTP: server.listen is ""`), stdio}
	}
	url := a.runningURL(ctx, cfg.StateDir)
	if _, port, err := net.SplitHostPort(cfg.Listen); url == "" && (err != nil || port == "0") {
		return clientfile.Server{}, &hintError{fmt.Errorf("server.listen is %q, so the host takes another port at each start; set a fixed port", cfg.Listen), stdio}
	}
	configured, err := daemon.ConfiguredURL(cfg)
	if err != nil {
		return clientfile.Server{}, err
	}
	var token string
	switch at := cmp.Or(url, configured); {
	case tokenFile != "":
		token, err = a.agentToken(cfg, tokenFile)
	case !isLoopbackURL(at):
		err = &hintError{
			fmt.Errorf("the host's own token is valid at a loopback address only, and clients reach this host at %s", at),
			"give the client a token of its own: " + a.command("token new NAME --account any") + ", then --token-file FILE",
		}
	default:
		token, err = daemon.AgentToken(cfg.StateDir)
	}
	if err != nil {
		return clientfile.Server{}, err
	}
	if url != "" && url != configured {
		fmt.Fprintf(a.stderr, "toolhost: the running host has another port than the configured one, and may have another one after its next start: %s\n", url)
	}
	return clientfile.Server{URL: cmp.Or(url, configured) + mcpPath, Token: token}, nil
}

// runningURL returns where the running host is reached over HTTP; "" if that is nowhere.
func (a *app) runningURL(ctx context.Context, stateDir string) string {
	c, err := client.New(client.Options{StateDir: stateDir, Name: "toolhost", Session: "cli"})
	if err != nil {
		return ""
	}
	defer c.Close()
	health, err := c.Health(ctx)
	if err != nil {
		return "" // no host is running
	}
	return health.URL
}

// agentToken returns the secret in a file if it belongs to a configured token of an agent. Any
// other secret, such as the approver's key, must not reach a client.
func (a *app) agentToken(cfg *config.Config, file string) (string, error) {
	secret, err := auth.ReadToken(file)
	if err != nil {
		return "", err
	}
	tokens, err := auth.NewTokens(cfg.Tokens)
	if err != nil {
		return "", err
	}
	caller, ok := tokens.Lookup(secret)
	switch {
	case !ok:
		return "", &hintError{fmt.Errorf("the token file %s has no token of this configuration", file), a.command("token new NAME") + " creates one and prints its configuration block"}
	case !caller.Roles.Has(auth.Agent):
		return "", &hintError{fmt.Errorf("the token %q of the file %s does not have the role agent, which a client needs", caller.Token, file), "use the file of an agent's token; " + a.command("token new NAME") + " makes one"}
	}
	return secret, nil
}

// mcpPath is where a host serves MCP over HTTP.
const mcpPath = "/mcp"

// overStdio is a process of this program that the client starts.
func (a *app) overStdio(tokenFile string) (clientfile.Server, error) {
	program, err := os.Executable()
	if err != nil {
		return clientfile.Server{}, fmt.Errorf("find this program: %w", err)
	}
	if _, err := a.stateDir(); err != nil { // the client would get a less helpful error later
		return clientfile.Server{}, err
	}
	path, err := config.Find(a.configPath, nil)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return clientfile.Server{}, err
	}
	args := []string{"mcp", "--config", path}
	if tokenFile != "" {
		cfg, err := a.loadConfig()
		if err != nil {
			return clientfile.Server{}, err
		}
		if _, err := a.agentToken(cfg, tokenFile); err != nil {
			return clientfile.Server{}, err
		}
		if tokenFile, err = filepath.Abs(tokenFile); err != nil {
			return clientfile.Server{}, err
		}
		args = append(args, "--token-file", tokenFile)
	}
	return clientfile.Server{Command: program, Args: args}, nil
}

// either joins words with "or".
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
