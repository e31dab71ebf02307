package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/config/bridged"
	"github.com/toolhost/toolhost/host/internal/front/clientfile"
	"github.com/toolhost/toolhost/sdk/tool"
)

func (a *app) mcpImportCommand() *cobra.Command {
	o, move := addOptions{}, false
	clients := slices.DeleteFunc(clientNames(), func(name string) bool { return name == "json" })
	cmd := &cobra.Command{
		Use:   "import CLIENT|FILE",
		Short: "Import the MCP servers of a client",
		Long: `Import the MCP servers of a client (` + either(clients) + `), or of a FILE with
such a list, each as a plugin in a sandbox of its own. Servers that npx starts become
packages of the store: see toolhost mcp add. Values of variables that look like secrets,
and headers, go into files in the state directory, which no plugin can read.

With --move, the servers are also removed from the client's list, so that the client no
longer starts them itself; toolhost connect then connects it to this host.`,
		Example: `  toolhost mcp import claude-code --move
  toolhost mcp import ~/Library/claude_desktop_config.json`,
		Args:      a.oneArgument("a CLIENT or a FILE", "connect --help"),
		ValidArgs: clients,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.mcpImport(cmd.Context(), args[0], slices.Contains(clients, args[0]), move, o)
		},
	}
	cmd.Flags().StringVar(&o.workspace, "workspace", "ro", "what the servers may do in the workspace: none, ro (read) or rw (read and write)")
	cmd.Flags().DurationVar(&o.minAge, "min-age", defaultMinAge, "the least age of a package's version, and of each package that it needs")
	cmd.Flags().BoolVar(&move, "move", false, "also remove the servers from the client's list")
	cmd.Flags().BoolVar(&o.print, "print", false, "print the plugin blocks and write nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "write without asking")
	return cmd
}

// mcpImport adds the servers of a client or a file.
func (a *app) mcpImport(ctx context.Context, from string, client, move bool, o addOptions) error {
	if move && !client {
		return &usageError{errors.New("--move is for the list of a client, not for a file")}
	}
	if !slices.Contains(workspaceWords, o.workspace) {
		return &usageError{fmt.Errorf("--workspace: %q is not none, ro or rw", line(o.workspace))}
	}
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	list, err := a.listedServers(from, client)
	if err != nil {
		return err
	}
	var all []addition
	var left []leftOut
	names := map[string]bool{}
	for _, listed := range list {
		added, reason := a.imported(ctx, cfg, listed, o)
		if reason == nil {
			added.server.Name, reason = freeName(cfg, added.server.Name, true)
		}
		if reason == nil && names[added.server.Name] {
			reason = fmt.Errorf("another server has the name %s", added.server.Name)
		}
		if reason != nil {
			left = append(left, leftOut{listed.Name, reason.Error()})
			continue
		}
		names[added.server.Name] = true
		all = append(all, added)
	}
	for _, l := range left {
		fmt.Fprintf(a.stderr, "toolhost: %s is left out: %s\n", line(l.Name), paragraph(l.Reason))
	}
	if len(all) == 0 {
		return fmt.Errorf("none of the %d servers was imported", len(list))
	}
	a.leftOut = left
	if move && !o.print {
		a.moved = func() error { return a.removeListed(from, list, left) }
	}
	if err := a.writeServers(ctx, cfg, all, o.yes, o.print); err != nil || o.print || !client {
		return err
	}
	if !move {
		fmt.Fprintf(a.stderr, "toolhost: %s still starts these servers itself, until they are removed from its list; --move does that\n", from)
	}
	fmt.Fprintf(a.stderr, "hint: %s\n", a.command("connect "+from))
	return nil
}

// removeListed takes the servers that were imported out of the list of a client.
func (a *app) removeListed(client string, list []clientfile.Listed, left []leftOut) error {
	var names []string
	for _, s := range list {
		if !slices.ContainsFunc(left, func(l leftOut) bool { return l.Name == s.Name }) {
			names = append(names, s.Name)
		}
	}
	place, err := a.place()
	if err != nil {
		return err
	}
	changes, err := clientfile.Remove(client, place, names)
	if err != nil {
		return fmt.Errorf("remove the servers from the list of %s, which stays as it is: %w", client, err)
	}
	for _, change := range changes {
		backup, err := change.Write()
		if err != nil {
			return fmt.Errorf("remove the servers from the list of %s: %w", client, err)
		}
		fmt.Fprintf(a.stderr, "toolhost: removed them from %s; the old file is %s\n", line(change.Path), line(backup))
	}
	return nil
}

// listedServers returns the servers of a client or a file, without this host.
func (a *app) listedServers(from string, client bool) ([]clientfile.Listed, error) {
	var list []clientfile.Listed
	files := []string{from}
	place, err := a.place()
	if err != nil {
		return nil, err
	}
	if client {
		list, files, err = clientfile.Servers(from, place)
	} else {
		list, err = clientfile.ServersIn(from)
	}
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s clientfile.Listed) bool { return s.IsHost("") })
	switch {
	case len(list) > 0:
		return list, nil
	case len(files) == 0:
		return nil, fmt.Errorf("%s has no list of MCP servers for this directory", from)
	}
	return nil, fmt.Errorf("there are no MCP servers in %s", line(strings.Join(files, ", ")))
}

// imported makes an addition of a listed server, or says why there is none.
func (a *app) imported(ctx context.Context, cfg *config.Config, listed clientfile.Listed, o addOptions) (added addition, err error) {
	switch {
	case listed.Wrong != "":
		return added, errors.New(listed.Wrong)
	case listed.Disabled:
		return added, errors.New("it is disabled")
	}
	added.server = bridged.Server{Name: orName("", listed.Name), Workspace: o.workspace, Network: "proxy", Ask: true, Tier: tool.SideEffecting}
	spelled := speller{workspace: cfg.Workspace.Top()}
	words := spelled.words(append([]string{listed.Command, listed.URL, listed.Dir}, listed.Args...))
	if spelled.wrong != nil {
		return added, spelled.wrong
	}
	command := append([]string{words[0]}, words[3:]...)
	dir := cmp.Or(words[2], filepath.Dir(listed.File))
	switch from, arguments, downloads := packageOf(command); {
	case listed.URL != "":
		err = added.isAt(words[1], nil)
	case downloads && from.source == "":
		err = fmt.Errorf("%s gets programs from elsewhere at each start, which the sandbox refuses: install the server and add its program", command[0])
	case downloads:
		o.program = from.program
		err = a.fetched(ctx, cfg, &added, from.source, arguments, o)
	default:
		err = added.runs(cfg, command, dir)
	}
	if err != nil {
		return added, err
	}
	added.server.Comment = strings.Replace(added.server.Comment, "added by toolhost mcp add", "imported from "+listed.File, 1)
	if words[2] != "" && listed.URL == "" {
		added.server.Dir = words[2]
		if !isWithin(cfg.Workspace.Top(), words[2]) && !slices.Contains(added.server.Read, words[2]) {
			added.server.Read = append(added.server.Read, words[2])
		}
	}
	w := secretWriter{server: added.server.Name, dir: secretsDir(cfg)}
	added.server.Env = w.all(listed.Env, spelled.value, looksSecret)
	added.server.Headers = w.all(listed.Headers, spelled.value, isCredential)
	added.secrets = w.files
	return added, errors.Join(spelled.wrong, w.wrong)
}

// download is a package that a command fetches, and the program in it that it starts; "" is the one of
// its own name.
type download struct{ source, program string }

// packageOf returns the package that a command fetches and starts, and the arguments of its program.
// downloads reports that the command fetches something at each start.
func packageOf(command []string) (from download, arguments []string, downloads bool) {
	if len(command) == 0 {
		return from, nil, false
	}
	switch strings.TrimSuffix(filepath.Base(command[0]), ".cmd") {
	case "npx", "bunx":
	case "uvx", "pipx", "docker", "podman":
		return from, nil, true
	default:
		return from, nil, false
	}
	words := command[1:]
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		name, isPackage := strings.CutPrefix(word, "--package=")
		switch {
		case isPackage:
			from.source = "npm:" + name
		case word == "-p" || word == "--package":
			if len(words) > 0 {
				from.source, words = "npm:"+words[0], words[1:]
			}
		case strings.HasPrefix(word, "-"):
		case from.source == "":
			return download{source: "npm:" + word}, words, true
		default:
			from.program = word
			return from, words, true
		}
	}
	return from, nil, true
}

// speller writes the values of a client's entry as this host's configuration does.
type speller struct {
	workspace string
	wrong     error
}

// variablePattern is a variable in a client's entry.
var variablePattern = regexp.MustCompile(`\$\{(?:(env|input):)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// value reads a text of a client's entry. Nothing else in it has a meaning for this host.
func (s *speller) value(text string) (v bridged.Value) {
	for text != "" {
		place := variablePattern.FindStringSubmatchIndex(text)
		if place == nil {
			return append(v, bridged.Part{Text: text})
		}
		found, kind, name := text[place[0]:place[1]], "", text[place[4]:place[5]]
		if place[2] >= 0 {
			kind = text[place[2]:place[3]]
		}
		if place[0] > 0 {
			v = append(v, bridged.Part{Text: text[:place[0]]})
		}
		text = text[place[1]:]
		switch {
		case kind == "input":
			s.wrong = errors.Join(s.wrong, fmt.Errorf("the client asks for %s at each start: add the server by itself, with a secret for it", found))
		case name == "workspaceFolder":
			v = append(v, bridged.Part{Text: s.workspace})
		default:
			v = append(v, bridged.Part{Function: "env", Text: name})
		}
	}
	return v
}

// words reads the words of a command, which cannot have variables of the environment.
func (s *speller) words(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		text, plain := s.value(word).Plain()
		if !plain {
			s.wrong = errors.Join(s.wrong, fmt.Errorf("its command contains a variable of the environment, %q: write its value", line(word)))
		}
		out[i] = text
	}
	return out
}
