package install

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// fetchTimeout bounds one installation.
	fetchTimeout = 10 * time.Minute
	// maxLines bounds the lines of npm that an error has, and maxLine each of them in bytes.
	maxLines = 12
	maxLine  = 400
)

// npm installs a package into dir, without running anything of it.
func npm(ctx context.Context, opts Options, r Reference, dir string) error {
	registry, rules, scopes, err := opts.registries()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("npm did not end within %v", fetchTimeout))
	defer cancel()
	profile, done, err := npmProfile(opts, registry, scopes, r, dir)
	if err != nil {
		return err
	}
	defer done()
	proc, err := opts.Launcher.Launch(ctx, profile)
	if err != nil {
		return fmt.Errorf("start npm: %w", err)
	}
	_ = proc.Stdin.Close() // it reads nothing
	refused := &refusals{}
	if proc.Proxy == nil {
		proc.Kill()
		<-proc.Done()
		return errors.New("start npm: this machine cannot keep it to one host, since network namespaces are missing")
	}
	proxy := egress.New(ctx, egress.Options{
		Listener: proc.Proxy, Rules: rules, CauseOf: func([]byte) egress.Cause { return egress.Cause{} },
		Opened: func(egress.Connection) {}, Closed: refused.note,
	})
	defer proxy.Close()
	stop := context.AfterFunc(ctx, proc.Kill)
	defer stop()
	said := &tail{copyTo: opts.Log}
	var reading sync.WaitGroup
	for _, output := range []io.Reader{proc.Stdout, proc.Stderr} {
		reading.Go(func() { said.read(output) }) // ends with the program
	}
	<-proc.Done()
	reading.Wait()
	_ = proc.Stdout.Close() // they were read to the end
	_ = proc.Stderr.Close()
	state := proc.Exit().State
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case state != nil && state.Success():
		return nil
	}
	return fmt.Errorf("npm cannot install %s: %v%s%s", r.Name, state, refused.text(), said.text())
}

// registryOf returns the URL of the registry, and its host with the port.
func registryOf(text string) (registry, host string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", "", fmt.Errorf("the registry of npm is %q, expected an http or https address: npm config set registry ADDRESS", text)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.String(), net.JoinHostPort(u.Hostname(), port), nil
}

// registries returns the URL of the registry, the settings of npm for scopes, and rules that allow these
// hosts only, whatever addresses they have: the operator has configured npm with them.
func (o Options) registries() (registry string, rules *egress.Rules, settings string, err error) {
	rules = &egress.Rules{Private: true}
	allow := func(text string) (string, error) {
		registry, host, err := registryOf(text)
		if err != nil {
			return "", err
		}
		to, err := egress.ParseDestination(host)
		if err != nil {
			return "", fmt.Errorf("the registry of npm: %w", err)
		}
		rules.Allow = append(rules.Allow, to)
		return registry, nil
	}
	if registry, err = allow(o.Registry); err != nil {
		return "", nil, "", err
	}
	for _, scope := range slices.Sorted(maps.Keys(o.Scopes)) {
		at, err := allow(o.Scopes[scope])
		if err != nil {
			return "", nil, "", err
		}
		settings += scope + ":registry=" + at + "\n"
	}
	return registry, rules, settings, nil
}

// npmProfile returns the confinement of npm: it writes into dir, executes node only, and reaches the
// host's proxy. done closes its program.
func npmProfile(opts Options, registry, scopes string, r Reference, dir string) (p sandbox.Profile, done func(), err error) {
	node, err := os.Open(opts.Node)
	if err != nil {
		return p, nil, fmt.Errorf("start npm: %w", err)
	}
	home := filepath.Join(dir, ".npm")
	if err := errors.Join(os.Mkdir(home, 0o700), os.WriteFile(filepath.Join(home, "npmrc"), []byte(scopes), 0o600)); err != nil {
		return p, nil, errors.Join(fmt.Errorf("start npm: %w", err), node.Close())
	}
	done = func() {
		_ = node.Close()
		_ = removeAll(home) // the package is sealed without it
	}
	npmDir := filepath.Dir(filepath.Dir(opts.NPM)) // lib/node_modules/npm, of .../bin/npm-cli.js
	proxy := "http://" + egress.Address
	wanted := r.Name
	if r.Version != "" {
		wanted += "@" + r.Version
	}
	args := []string{
		opts.NPM, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--omit=dev", "--install-links=true",
		"--prefix=" + dir, "--cache=" + filepath.Join(home, "cache"), "--userconfig=" + filepath.Join(home, "npmrc"), "--globalconfig=" + filepath.Join(home, "npmrc-global"),
		"--registry=" + registry, "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=3000", "--loglevel=error",
	}
	if opts.MinAge > 0 {
		args = append(args, "--before="+time.Now().Add(-opts.MinAge).UTC().Format(time.RFC3339))
	}
	env := []string{
		"PATH=" + filepath.Dir(opts.Node), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8",
		"npm_config_https_proxy=" + proxy, "npm_config_proxy=" + proxy, "npm_config_noproxy=",
		"HTTPS_PROXY=" + proxy, "HTTP_PROXY=" + proxy, "NO_PROXY=",
	}
	read := []string{npmDir, "/etc/ssl", "/usr/share/ca-certificates", "/etc/pki", "/etc/ca-certificates"}
	if len(opts.Certificates) > 0 {
		env = append(env, "NODE_EXTRA_CA_CERTS="+opts.Certificates[0])
		read = append(read, opts.Certificates...)
	}
	return sandbox.Profile{
		Binary: node, Path: opts.Node, Args: append(args, "--", wanted), Env: env, Dir: dir, Name: "npm-install", Own: []string{dir},
		ProxyPort: egress.Port,
		Limits:    sandbox.Limits{Memory: 4 * tool.GiB, OpenFiles: 4096, FileSize: tool.GiB, Stack: 8 * tool.MiB, Processes: 0},
		Confinement: sandbox.Confinement{
			Require: []sandbox.Layer{sandbox.LayerRlimits, sandbox.LayerNoNewPrivs, sandbox.LayerNetNS},
			RunAs:   sandbox.RunAs{Mode: sandbox.RunAsAuto}, Network: sandbox.NetworkProxy,
			Read: read, Exec: []string{opts.Node}, TmpSize: sandbox.DefaultTmpSize,
		},
	}, done, nil
}

// refusals notes which destinations the proxy has refused.
type refusals struct {
	mu  sync.Mutex // guards all
	all []string
}

func (r *refusals) note(c egress.Connection) {
	if !c.Refused {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	to := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	if len(r.all) < maxLines {
		r.all = append(r.all, to)
	}
}

func (r *refusals) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return ""
	}
	return "; it may reach the registry only, and tried " + tool.Visible(strings.Join(r.all, ", "))
}

// tail keeps the last lines of a program's output.
type tail struct {
	mu     sync.Mutex // guards lines and copyTo
	lines  []string
	copyTo io.Writer
}

func (t *tail) read(from io.Reader) {
	in := bufio.NewReaderSize(from, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if text := string(bytes.TrimSpace(line)); text != "" {
			t.add(tool.Visible(text))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines = append(t.lines, line); len(t.lines) > maxLines {
		t.lines = t.lines[1:]
	}
	if t.copyTo != nil {
		fmt.Fprintln(t.copyTo, line)
	}
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		return ""
	}
	return ":\n" + strings.Join(t.lines, "\n")
}
