package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/config/bridged"
	"github.com/toolhost/toolhost/host/internal/plugin/install"
	"github.com/toolhost/toolhost/sdk/tool"
)

// defaultMinAge is how old a package must be: most malicious versions are found within a day.
const defaultMinAge = 24 * time.Hour

// workspaceWords are what a server may do in the workspace.
var workspaceWords = []string{"none", "ro", "rw"}

// addOptions are the flags of `toolhost mcp add`.
type addOptions struct {
	name, workspace, tier, program string
	allow, env, headers            []string
	ask, split, yes, print         bool
	minAge                         time.Duration
}

func (a *app) mcpAddCommand() *cobra.Command {
	o := addOptions{}
	cmd := &cobra.Command{
		Use:   "add SOURCE [-- ARGUMENT...] | add -- PROGRAM [ARGUMENT...]",
		Short: "Add an MCP server, confined in a sandbox",
		Long: `Add an MCP server to the configuration, as a plugin in a sandbox of its own. SOURCE is a
package, npm:NAME or npm:NAME@VERSION, or the URL of a server; a program of this machine
follows --. A package is fetched once, into a store, by an npm in a sandbox that reaches
only the registry that npm is configured with, and without the package's install scripts;
the server then runs from the store.

The command shows the plugin block and what the server can reach, asks, and writes it. The
server's tools are pending until you accept their definitions. Values of --env and
--header may contain {{secret:NAME}}, the value of a secret block.`,
		Example: `  toolhost mcp add npm:@modelcontextprotocol/server-filesystem --workspace rw --split-tiers -- .
  toolhost mcp add https://mcp.example.com/mcp --header 'Authorization=Bearer {{secret:example}}'
  toolhost mcp add --name notes -- python3 /srv/notes/server.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash < 0 && len(args) > 1 || dash > 1 {
				return errors.New("expected one SOURCE; the arguments of the server follow --")
			}
			if len(args) == 0 {
				return errors.New("expected a SOURCE: npm:NAME, a URL, or -- and a program")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			source, rest := "", args
			if cmd.ArgsLenAtDash() != 0 {
				source, rest = args[0], args[1:]
			}
			return a.mcpAdd(cmd.Context(), source, rest, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "the name of the plugin block (default: from the source)")
	flags.StringVar(&o.workspace, "workspace", "ro", "what the server may do in the workspace: none, ro (read) or rw (read and write)")
	flags.StringVar(&o.tier, "tier", tool.SideEffecting.String(), "the highest tier of its tools")
	flags.StringVar(&o.program, "program", "", "the program of a package that has several")
	flags.StringArrayVar(&o.allow, "allow", nil, "a host that the server may connect to unasked, such as api.example.com")
	flags.BoolVar(&o.ask, "ask", true, "ask a person about each other host; without it, they are refused")
	flags.BoolVar(&o.split, "split-tiers", false, "run tools that claim to only read unasked, in a second process that can change nothing and has no network")
	flags.StringArrayVar(&o.env, "env", nil, "a variable of the server's environment, NAME=VALUE")
	flags.StringArrayVar(&o.headers, "header", nil, "a header of requests to a URL, NAME=VALUE")
	flags.DurationVar(&o.minAge, "min-age", defaultMinAge, "the least age of a package's version, and of each package that it needs")
	flags.BoolVar(&o.print, "print", false, "print the plugin block and write nothing")
	flags.BoolVar(&o.yes, "yes", false, "write without asking")
	a.completeFlag(cmd, "workspace", oneOfNames(workspaceWords...))
	a.completeFlag(cmd, "tier", oneOfNames(tool.ReadOnly.String(), tool.SideEffecting.String(), tool.Privileged.String()))
	return cmd
}

// addition is a server that is about to be added.
type addition struct {
	server  bridged.Server
	from    *install.Package // nil: not of a package
	secrets []secretFile
}

// mcpAdd adds one server.
func (a *app) mcpAdd(ctx context.Context, source string, arguments []string, o addOptions) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	if converted, rest, downloads := packageOf(arguments); source == "" && downloads {
		if converted.source == "" {
			return fmt.Errorf("%s gets programs from elsewhere at each start, which the sandbox refuses: install the server, and name its program", line(arguments[0]))
		}
		source, arguments = converted.source, rest
		o.program = cmp.Or(o.program, converted.program)
	}
	added := addition{server: bridged.Server{Name: o.name, Workspace: o.workspace, Network: "proxy", Hosts: o.allow, Ask: o.ask, SplitTiers: o.split}}
	if err := added.server.Tier.UnmarshalText([]byte(o.tier)); err != nil {
		return &usageError{fmt.Errorf("--tier: %w", err)}
	}
	if !slices.Contains(workspaceWords, o.workspace) {
		return &usageError{fmt.Errorf("--workspace: %q is not none, ro or rw", line(o.workspace))}
	}
	env, err := pairs("env", o.env)
	if err != nil {
		return err
	}
	headers, err := pairs("header", o.headers)
	if err != nil {
		return err
	}
	if !o.ask && len(o.allow) == 0 {
		added.server.Network = "none"
	}
	switch {
	case source == "":
		err = added.runs(cfg, arguments, "")
	case strings.Contains(source, "://"):
		err = added.isAt(source, arguments)
	default:
		err = a.fetched(ctx, cfg, &added, source, arguments, o)
	}
	if err != nil {
		return err
	}
	if added.server.Name, err = freeName(cfg, added.server.Name, o.name != ""); err != nil {
		return err
	}
	w := secretWriter{server: added.server.Name, dir: secretsDir(cfg)}
	added.server.Env, added.server.Headers = w.typed(env, looksSecret), w.typed(headers, isCredential)
	if w.wrong != nil {
		return &usageError{w.wrong}
	}
	added.secrets = w.files
	return a.writeServers(ctx, cfg, []addition{added}, o.yes, o.print)
}

// pairs reads NAME=VALUE.
func pairs(flag string, texts []string) (map[string]string, error) {
	values := make(map[string]string)
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, &usageError{fmt.Errorf("--%s: %q is not NAME=VALUE", flag, line(text))}
		}
		values[name] = value
	}
	return values, nil
}

// runs makes the server a program of this machine, which starts in dir, or in the directory of the
// command.
func (s *addition) runs(cfg *config.Config, command []string, dir string) error {
	program, err := programOf(command[0], dir)
	if err != nil {
		return err
	}
	s.server.Comment = "added by toolhost mcp add"
	s.server.Command = append([]string{program}, command[1:]...)
	s.server.Name = orName(s.server.Name, nameOf(command))
	s.server.Exec = executable(cfg, program)
	for i, argument := range command[1:] { // the server's own files
		path := argument
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if strings.HasPrefix(argument, "-") || !isFile(path) {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		s.server.Command[i+1] = path
		if root := ownFiles(path); !isWithin(cfg.Workspace.Top(), root) && !slices.Contains(s.server.Read, root) {
			s.server.Read = append(s.server.Read, root)
		}
	}
	return nil
}

// isAt makes the server one that is reached at a URL.
func (s *addition) isAt(address string, arguments []string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return &usageError{fmt.Errorf("%q is not an http or https address", line(address))}
	case u.User != nil:
		return &usageError{errors.New("the address contains a password: use --header with a secret instead")}
	case len(arguments) > 0:
		return &usageError{errors.New("a server at a URL takes no arguments")}
	}
	s.server.Comment = "added by toolhost mcp add"
	s.server.URL, s.server.Workspace = address, "none"
	s.server.Network = "proxy"
	if host := hostOf(u); !slices.Contains(s.server.Hosts, host) {
		s.server.Hosts = append([]string{host}, s.server.Hosts...)
	}
	s.server.Ask = false // it connects to nothing else
	labels := slices.DeleteFunc(strings.Split(u.Hostname(), "."), func(label string) bool { return label == "mcp" || label == "api" || label == "www" })
	if len(labels) > 1 {
		labels = labels[:len(labels)-1]
	}
	s.server.Name = orName(s.server.Name, labels[len(labels)-1])
	return nil
}

// hostOf returns a host as an allow list has it.
func hostOf(u *url.URL) string {
	host := u.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	return host
}

// orName returns the given name, or one made of a text.
func orName(given, text string) string {
	if given != "" {
		return given
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		}
		return '-'
	}, text)
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' })
	if own := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "mcp" || word == "server" }); len(own) > 0 {
		words = own
	}
	name = strings.Join(words, "-")
	const most = 24 // names of tools begin with it
	name = strings.Trim(name[:min(len(name), most)], "-")
	if !tool.ValidPluginName(name) {
		return "server"
	}
	return name
}

// nameOf returns what a command is called: its script, otherwise its program.
func nameOf(command []string) string {
	for _, word := range slices.Concat(command[1:], command[:1]) {
		if strings.HasPrefix(word, "-") || strings.ContainsAny(word, "=:") {
			continue
		}
		base := filepath.Base(word)
		base = strings.TrimSuffix(base, filepath.Ext(base))
		if generic := slices.Contains([]string{"index", "main", "server", "dist", "build", "src", "run", "."}, base); generic && filepath.Dir(word) != "." {
			base = filepath.Base(projectOf(word))
		}
		if len(base) > 1 {
			return base
		}
	}
	return "server"
}

// freeName returns a name that no plugin has. A name that was asked for is not changed.
func freeName(cfg *config.Config, name string, asked bool) (string, error) {
	taken := func(name string) bool {
		return slices.ContainsFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Supervisor.Name == name })
	}
	switch {
	case !tool.ValidPluginName(name):
		return "", &usageError{fmt.Errorf("--name: %q cannot be a plugin's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -", line(name))}
	case !taken(name):
		return name, nil
	case asked:
		return "", fmt.Errorf("the configuration has a plugin %q already", name)
	}
	for i := 2; ; i++ {
		if next := fmt.Sprintf("%s-%d", name, i); !taken(next) {
			return next, nil
		}
	}
}

// isWithin reports whether path is dir or below it. No path is within "".
func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// ownFiles returns what a server must read to run a file: the directory of its project, or the file
// alone if that directory has much else, as a home directory does.
func ownFiles(file string) string {
	root := projectOf(file)
	if home, err := os.UserHomeDir(); root == "/" || err == nil && isWithin(root, home) {
		return file
	}
	return root
}

// projectOf returns the directory of the project that a file belongs to: the one around node_modules,
// whose packages need each other; the nearest one with a package.json, pyproject.toml or .venv, at
// most four levels up; otherwise the file's own.
func projectOf(file string) string {
	if project, _, installed := strings.Cut(file, "/node_modules/"); installed {
		return project
	}
	dir := filepath.Dir(file)
	for range 4 {
		for _, name := range []string{"package.json", "pyproject.toml", ".venv", "go.mod"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return dir
			}
		}
		dir = filepath.Dir(dir)
	}
	return filepath.Dir(file)
}

// describeServer says what a server will be able to do.
func describeServer(s bridged.Server) string {
	var b strings.Builder
	add := func(what, text string) { fmt.Fprintf(&b, "  %-11s%s\n", what, text) }
	if s.URL != "" {
		add("reaches", s.URL)
	} else {
		add("runs", line(strings.Join(s.Command, " ")))
	}
	add("workspace", map[string]string{"none": "not visible", "ro": "reads", "rw": "reads and writes"}[s.Workspace])
	if len(s.Read) > 0 {
		add("reads", line(strings.Join(s.Read, ", ")))
	}
	if len(s.Exec) > 0 {
		exec := slices.Clone(s.Exec)
		if i := slices.Index(exec, "system"); i >= 0 {
			exec[i] = "the programs of the system"
		}
		add("executes", line(strings.Join(exec, ", ")))
	}
	switch {
	case s.Network == "none":
		add("network", "none")
	case s.Ask && len(s.Hosts) > 0:
		add("network", line(strings.Join(s.Hosts, ", "))+"; you are asked about each other host")
	case s.Ask:
		add("network", "you are asked about each host that its calls connect to")
	default:
		add("network", line(strings.Join(s.Hosts, ", "))+" only")
	}
	if s.SplitTiers {
		add("reads", "tools that claim to only read run unasked, in a process that can change nothing")
	}
	for _, values := range []map[string]bridged.Value{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			for _, part := range values[name] {
				switch part.Function {
				case "env":
					add("takes", "the variable "+line(part.Text)+" of your environment, as "+line(name))
				case "secret":
					add("takes", "the secret "+line(part.Text)+", as "+line(name))
				}
			}
		}
	}
	return b.String()
}
