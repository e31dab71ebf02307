package config

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// registryClient is a program that gets packages from a registry, and how it is configured. The host
// knows the address of no registry: it reads the client's settings, and then asks the client.
type registryClient struct {
	// variables name the registry in the environment. The first that is set counts.
	variables []string
	// files are the client's settings of the user, the first one first. The values of env are "" if
	// a variable is not set.
	files func(env func(name string) string) []string
	// main finds the registry in a line of a file, more those that are used besides it.
	main, more func() *regexp.Regexp
	// argv asks the client, and answer finds the registry in what it prints.
	argv   []string
	answer func() *regexp.Regexp
	// set says how to configure the client.
	set string
}

// registryClients returns the clients by name.
func registryClients() map[string]registryClient {
	return map[string]registryClient{
		"npm": {
			variables: []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"},
			files: func(env func(string) string) []string {
				return []string{cmp.Or(env("npm_config_userconfig"), env("NPM_CONFIG_USERCONFIG"), below(env("HOME"), ".npmrc"))}
			},
			main: npmMain, more: npmMore,
			argv: []string{"npm", "config", "get", "registry"}, answer: wholeLine,
			set: "set npm_config_registry, or registry in ~/.npmrc",
		},
		"go": {
			variables: []string{"GOPROXY"},
			files: func(env func(string) string) []string {
				return []string{cmp.Or(env("GOENV"), below(configHome(env), "go/env"))}
			},
			main: goMain,
			argv: []string{"go", "env", "GOPROXY"}, answer: wholeLine,
			set: "set GOPROXY to the URL of a module proxy, in the environment or with go env -w",
		},
		"pip": {
			variables: []string{"PIP_INDEX_URL"},
			files: func(env func(string) string) []string {
				return []string{
					env("PIP_CONFIG_FILE"), below(env("VIRTUAL_ENV"), "pip.conf"), below(configHome(env), "pip/pip.conf"), below(env("HOME"), ".pip/pip.conf"),
				}
			},
			main: pipMain, more: pipMore,
			argv: []string{"pip", "download", "--help"}, answer: pipDefault,
			set: "set PIP_INDEX_URL, or index-url in ~/.config/pip/pip.conf",
		},
	}
}

var (
	npmMain    = lazyregexp.New(`^\s*registry\s*=\s*"?([^"\s]+)`)
	npmMore    = lazyregexp.New(`^\s*@[^\s:=]+:registry\s*=\s*"?([^"\s]+)`)
	goMain     = lazyregexp.New(`^GOPROXY=(\S+)`)
	pipMain    = lazyregexp.New(`^\s*index-url\s*[=:]\s*(\S+)`)
	pipMore    = lazyregexp.New(`^\s*extra-index-url\s*[=:]\s*(\S+)`)
	wholeLine  = lazyregexp.New(`^(\S+)$`)
	pipDefault = lazyregexp.New(`--index-url <url> .*\(default:? (\S+?)\)`)
)

// below returns a path in a directory; "" if the directory is unknown.
func below(dir, path string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, path)
}

// configHome returns the directory of the user's settings.
func configHome(env func(string) string) string {
	return cmp.Or(env("XDG_CONFIG_HOME"), below(env("HOME"), ".config"))
}

// registryFunction is registry("npm"): the hosts that a client on this machine gets packages from.
func (d *decoder) registryFunction() function.Function {
	known := make(map[string][]string) // a client is asked once
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "client", Type: cty.String}},
		Type:   function.StaticReturnType(cty.List(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			clients := registryClients()
			client, ok := clients[name]
			if !ok {
				names := slices.Sorted(maps.Keys(clients))
				return cty.NilVal, function.NewArgErrorf(0, "there is no client %q, expected %s", name, diag.Words(names))
			}
			if known[name] == nil {
				hosts, err := d.registryHosts(client)
				if err != nil {
					return cty.NilVal, function.NewArgErrorf(0, "%v; %s, or write the host instead", err, client.set)
				}
				known[name] = hosts
			}
			values := make([]cty.Value, 0, len(known[name]))
			for _, host := range known[name] {
				values = append(values, cty.StringVal(host))
			}
			return cty.ListVal(values), nil
		},
	})
}

// registryCall returns a call of registry() as it is written; "" for another expression.
func registryCall(expr hcl.Expression) string {
	call, ok := expr.(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "registry" || len(call.Args) != 1 {
		return ""
	}
	name, diags := call.Args[0].Value(nil)
	if diags.HasErrors() || name.Type() != cty.String {
		return "registry(...)"
	}
	return fmt.Sprintf("registry(%q)", name.AsString())
}

// registryHosts returns the hosts of a client's registries: of the variable, else of the user's files,
// else what the client answers.
func (d *decoder) registryHosts(c registryClient) ([]string, error) {
	env := func(name string) string {
		value, _ := d.opts.LookupEnv(name)
		return value
	}
	for _, name := range c.variables {
		if value := env(name); value != "" {
			return hostsOf(value, "the variable "+name)
		}
	}
	var more []string
	for _, path := range c.files(env) {
		if !filepath.IsAbs(path) {
			continue
		}
		main, others, err := d.registryFile(path, c)
		if err != nil {
			return nil, err
		}
		more = append(more, others...)
		if main != "" {
			return hostsOf(strings.Join(append([]string{main}, more...), ","), path)
		}
	}
	answer, err := d.askClient(c, env)
	if err != nil {
		return nil, err
	}
	return hostsOf(strings.Join(append([]string{answer}, more...), ","), strings.Join(c.argv, " "))
}

// registryFile reads the registries in a file of settings. No plugin may change the file.
func (d *decoder) registryFile(path string, c registryClient) (main string, more []string, err error) {
	text, err := readBounded(path, maxTextBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	d.read = append(d.read, path)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if found := c.main().FindStringSubmatch(lines.Text()); found != nil {
			main = found[1]
		}
		if c.more != nil {
			if found := c.more().FindStringSubmatch(lines.Text()); found != nil {
				more = append(more, found[1])
			}
		}
	}
	return main, more, nil
}

// askTimeout and maxAnswer bound a client that is asked.
const askTimeout, maxAnswer = 20 * time.Second, 256 * tool.KiB

// askClient runs a client for its settings, outside of the workspace, whose files it could read too.
func (d *decoder) askClient(c registryClient, env func(string) string) (string, error) {
	program := ""
	for _, dir := range filepath.SplitList(env("PATH")) {
		path := below(dir, c.argv[0])
		if target, err := filepath.EvalSymlinks(path); path != "" && err == nil && process.CheckProgram(target) == nil {
			program = path
			d.asked = append(d.asked, path, target)
			break
		}
	}
	if program == "" {
		return "", fmt.Errorf("there is no setting, and no program %s in PATH that only root and the user of the host can change", c.argv[0])
	}
	variables := []string{"COLUMNS=1000", "GOTOOLCHAIN=local", "npm_config_update_notifier=false", "PIP_DISABLE_PIP_VERSION_CHECK=1"}
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "GOENV", "npm_config_userconfig", "NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE", "VIRTUAL_ENV"} {
		if value := env(name); value != "" {
			variables = append(variables, name+"="+value)
		}
	}
	out, err := sandbox.Output(context.Background(), sandbox.Command{ //nolint:forbidigo // nothing else ends it
		Argv: append([]string{program}, c.argv[1:]...), Env: variables, Timeout: askTimeout, MaxOutput: maxAnswer,
	})
	if err != nil {
		return "", fmt.Errorf("the program %s %w", strings.Join(c.argv, " "), err)
	}
	for line := range strings.Lines(string(out)) {
		if found := c.answer().FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			return found[1], nil
		}
	}
	return "", fmt.Errorf("%s prints no registry", strings.Join(c.argv, " "))
}

// separator is what separates URLs in GOPROXY.
var separator = lazyregexp.New(`[,|]`)

// hostsOf returns the hosts of URLs as destinations. It never shows the URLs, which may have a password.
func hostsOf(urls, source string) (hosts []string, err error) {
	for _, text := range separator().Split(urls, -1) {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
			continue // such as "direct"
		}
		host := u.Hostname()
		if usual := map[string]string{"https": "443", "http": "80"}[u.Scheme]; u.Port() != "" && u.Port() != usual {
			host = u.Host
		} else if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("%s has no URL of a registry", source)
	}
	return hosts, nil
}
