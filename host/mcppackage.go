package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/config/initial"
	"github.com/toolhost/toolhost/host/internal/plugin/install"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// fetched makes the server the program of a package, which is fetched.
func (a *app) fetched(ctx context.Context, cfg *config.Config, s *addition, source string, arguments []string, o addOptions) error {
	ref, err := install.ParseReference(source)
	if err != nil {
		return &usageError{err}
	}
	fmt.Fprintf(a.stderr, "toolhost: fetching %s into the store of packages...\n", source)
	p, node, err := fetchPackage(ctx, ref, o.minAge)
	if err != nil {
		return err
	}
	program, err := p.ProgramFile(o.program)
	if err != nil {
		return err
	}
	p.Program = o.program
	s.from = &p
	s.server.Comment = p.String() + ", added by toolhost mcp add"
	s.server.Command = append([]string{node, program}, arguments...)
	s.server.Name = orName(s.server.Name, titleOf(ref.Name))
	s.server.Read = append(s.server.Read, p.Dir)
	s.server.Exec = executable(cfg, node)
	return nil
}

// titleOf returns what a package is called: its name without the scope, or the scope of a package
// that has a general name.
func titleOf(name string) string {
	scope, own, scoped := strings.Cut(strings.TrimPrefix(name, "@"), "/")
	if scoped && !slices.Contains([]string{"mcp", "server", "mcp-server"}, own) {
		return own
	}
	return scope
}

// fetchPackage fetches a package into the store and returns it, and the node that runs it.
func fetchPackage(ctx context.Context, ref install.Reference, minAge time.Duration) (p install.Package, node string, err error) {
	store, err := packageStore()
	if err != nil {
		return p, "", err
	}
	node, err = programOf("node", "")
	if err != nil {
		return p, "", err
	}
	npm, err := programOf("npm", "")
	if err != nil {
		return p, "", err
	}
	registry, err := npmSetting(ctx, node, npm, "registry")
	if err != nil {
		return p, "", err
	}
	scopes, err := npmScopes(ctx, node, npm)
	if err != nil {
		return p, "", err
	}
	var certificates []string
	if file, err := npmSetting(ctx, node, npm, "cafile"); err == nil && filepath.IsAbs(file) {
		certificates = append(certificates, file)
	}
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return p, "", err
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	p, err = install.Fetch(ctx, install.Options{
		Launcher: launcher, Store: store, Node: node, NPM: npm, Registry: registry, Scopes: scopes, Certificates: certificates, MinAge: minAge,
	}, ref)
	return p, node, err
}

// npmTimeout and maxSettings bound a question to npm about its settings.
const (
	npmTimeout  = 20 * time.Second
	maxSettings = 256 * tool.KiB
)

// npmScopes returns the registries of scopes that this account's npm is configured with.
func npmScopes(ctx context.Context, node, npm string) (map[string]string, error) {
	out, err := askNPM(ctx, node, npm, "list", "--json")
	if err != nil {
		return nil, err
	}
	var settings map[string]any
	if err := json.Unmarshal([]byte(out), &settings); err != nil {
		return nil, fmt.Errorf("read the settings of npm: %w", err)
	}
	scopes := map[string]string{}
	for name, value := range settings {
		scope, isScope := strings.CutSuffix(name, ":registry")
		if at, ok := value.(string); ok && isScope && strings.HasPrefix(scope, "@") && !strings.ContainsAny(at, "\r\n") {
			scopes[scope] = at
		}
	}
	return scopes, nil
}

// npmSetting returns a setting of this account's npm.
func npmSetting(ctx context.Context, node, npm, name string) (string, error) {
	return askNPM(ctx, node, npm, "get", name)
}

// askNPM returns what npm config prints.
func askNPM(ctx context.Context, node, npm string, words ...string) (string, error) {
	argv := append([]string{node, npm, "config"}, words...)
	out, err := sandbox.Output(ctx, sandbox.Command{Argv: argv, Env: os.Environ(), Timeout: npmTimeout, MaxOutput: maxSettings})
	if err != nil {
		return "", fmt.Errorf("ask npm for its settings: the program %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// packageStore returns the directory of all packages: $XDG_DATA_HOME/toolhost/servers,
// /var/lib/toolhost-servers for root, or ~/.local/share/toolhost/servers.
func packageStore() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolhost/servers"), nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/toolhost-servers", nil // not below the state: plugins of other users must reach it
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the store of packages: %w", err)
	}
	return filepath.Join(home, ".local/share/toolhost/servers"), nil
}

// programOf returns the absolute path of a program, without symbolic links. A path with a slash is
// relative to dir.
func programOf(name, dir string) (string, error) {
	path := name
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		path = filepath.Join(dir, name)
		if !strings.Contains(path, "/") {
			path = "./" + path
		}
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("there is no program %q on this machine: install it, or correct PATH", line(name))
	}
	if found, err = filepath.Abs(found); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(found)
	if err != nil {
		return "", err
	}
	_, environment := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(found)), "pyvenv.cfg"))
	if environment == nil || !strings.HasPrefix(filepath.Base(real), filepath.Base(found)) {
		return found, nil // the program looks at how it was called
	}
	return real, nil
}

// executable returns what a server that is started with a program must execute.
func executable(cfg *config.Config, program string) []string {
	more := initial.Options{Workspace: cfg.Workspace.Top(), Programs: []initial.Program{{Name: filepath.Base(program), Path: program}}}.Executable()
	return slices.Concat([]string{sandbox.ExecSystem}, more)
}
