package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// remote is another repository.
type remote struct {
	name     string
	protocol string
	// url is the address that git connects to.
	url string
}

// remote finds a remote by its name. Without a name, it returns the remote of the
// branch, or else origin, or else the only remote.
func (r *repository) remote(name, branch string, push bool) (*remote, error) {
	names := r.config.subsections("remote")
	if name == "" {
		name = cmp.Or(r.config.last("branch", branch, "remote"), "origin")
		if len(names) == 1 && !slices.Contains(names, name) {
			name = names[0]
		}
	}
	if !slices.Contains(names, name) || strings.HasPrefix(name, "-") {
		return nil, tool.Errorf(tool.NotFound, "There is no remote %s", display.Name(display.Cut(name, maxEcho))).WithHint("%s", knownRemotes(names))
	}
	address, err := r.address(name, push)
	if err != nil {
		return nil, err
	}
	return r.reach(name, address)
}

func knownRemotes(names []string) string {
	if len(names) == 0 {
		return "the repository has no remotes; the user can add one (git remote add)"
	}
	return "the repository has these remotes: " + display.Names(names)
}

// address returns the address of a remote, rewritten by url.*.insteadOf.
func (r *repository) address(name string, push bool) (string, error) {
	addresses := r.config.all("remote", name, "url")
	var rewritten bool
	if push {
		if pushed := r.config.all("remote", name, "pushurl"); len(pushed) > 0 {
			addresses = pushed
		} else if len(addresses) > 0 {
			addresses = slices.Clone(addresses)
			addresses[0], rewritten = r.config.rewrite(addresses[0], "pushinsteadof")
		}
		if len(addresses) > 1 {
			return "", tool.Errorf(tool.Failed, "The remote %s has several addresses to push to", display.Name(name)).WithHint("name a remote with one address")
		}
	}
	if len(addresses) == 0 || addresses[0] == "" {
		return "", tool.Errorf(tool.NotFound, "The remote %s has no address", display.Name(name)).WithHint("the user can set it (git remote set-url)")
	}
	address := addresses[0]
	if !rewritten {
		address, _ = r.config.rewrite(address, "insteadof")
	}
	return address, nil
}

// rewrite applies url.<base>.insteadOf to an address: the longest matching prefix is
// replaced. It reports whether one matched.
func (c *config) rewrite(address, kind string) (string, bool) {
	best, found := -1, address
	for _, s := range c.settings {
		if s.Section == "url" && s.Name == kind && len(s.Value) > best && strings.HasPrefix(address, s.Value) {
			best, found = len(s.Value), s.Subsection+address[len(s.Value):]
		}
	}
	return found, best >= 0
}

var (
	helperAddress = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+.-]*::`)
	schemeAddress = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	scpAddress    = regexp.MustCompile(`^[^/:]+:`)
)

// reach returns the remote with an address, if the settings allow its protocol.
func (r *repository) reach(name, address string) (*remote, error) {
	to := &remote{name: name, url: address}
	switch found := schemeAddress.FindStringSubmatch(address); {
	case strings.ContainsFunc(address, func(c rune) bool { return c < ' ' || c == 0x7f }) || strings.HasPrefix(address, "-"):
		return nil, noAddress(name)
	case helperAddress.MatchString(address):
		to.protocol, _, _ = strings.Cut(address, "::")
	case found != nil:
		to.protocol = strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(found[1]), "git+"), "+git")
	case scpAddress.MatchString(address):
		to.protocol = "ssh"
	default:
		to.protocol = "file"
	}
	if !slices.Contains(r.settings.Protocols, to.protocol) || helperAddress.MatchString(address) {
		return nil, tool.Errorf(tool.PermissionDenied, "The remote %s uses the protocol %s, which the settings do not allow", display.Name(name), display.Name(to.protocol)).
			WithHint("the settings allow %s; the user can allow others in the plugin's settings (protocols)", strings.Join(r.settings.Protocols, ", "))
	}
	switch to.protocol {
	case "https", "http":
		return to, r.checkHTTP(to)
	case "file":
		return to, r.checkFile(to)
	}
	return to, nil
}

func noAddress(name string) *tool.Error {
	return tool.Errorf(tool.Failed, "The address of the remote %s is invalid", display.Name(name)).WithHint("the user can set it (git remote set-url)")
}

// checkHTTP refuses an address with a password, and removes a user name from it.
func (r *repository) checkHTTP(to *remote) error {
	u, err := url.Parse(to.url)
	if err != nil || u.Host == "" {
		return noAddress(to.name)
	}
	if _, secret := u.User.Password(); secret {
		return tool.Errorf(tool.PermissionDenied, "The address of the remote %s contains a password", display.Name(to.name)).
			WithHint("the user must remove it, and set credentials in the plugin's settings")
	}
	u.User = nil
	to.url = u.String()
	return nil
}

// checkFile refuses a repository outside the workspace, and one that a path rule covers:
// the host does not see that the address is a path.
func (r *repository) checkFile(to *remote) error {
	path := strings.TrimPrefix(to.url, "file://")
	if !strings.HasPrefix(path, "/") {
		path = r.worktree + "/" + path
	}
	var err error
	if to.url, err = locate(r.folders, path, true); err != nil {
		return tool.Errorf(tool.PermissionDenied, "The repository of the remote %s is outside the workspace, or does not exist", display.Name(to.name)).
			WithHint("name a remote in the workspace or on another machine").WithCause(err)
	}
	return r.refuseCovered(to.name, path, to.url)
}

// credential returns the credential for an address, or nil. There is none for a path
// with ".." or with unneeded escapes: the server could then use another path than the
// one that matches the credential.
func (s *settings) credential(address string) *credential {
	u, err := url.Parse(address)
	if err != nil || u.RawPath != "" {
		return nil
	}
	if asked := strings.TrimSuffix(u.Path, "/"); asked != "" && path.Clean(asked) != asked {
		return nil
	}
	for i := range s.Credentials {
		c := &s.Credentials[i]
		of, err := url.Parse(c.URL)
		if err != nil || of.Scheme != u.Scheme || !strings.EqualFold(of.Host, u.Host) {
			continue
		}
		if dir := strings.TrimSuffix(of.Path, "/"); dir == "" || u.Path == dir || strings.HasPrefix(u.Path, dir+"/") {
			return c
		}
	}
	return nil
}

// shells returns the paths of the shells that git starts for ssh and for helpers.
func shells() []string { return []string{"/bin/sh", "/usr/bin/sh", "/bin/dash", "/bin/bash"} }

// connect prepares a command that connects to the remote. The command may use only the
// remote's protocol and the credentials of the settings, and a shell only if the
// protocol needs one.
func (t *transfer) connect(ctx context.Context, to *remote, c *command) error {
	c.network = true
	c.env = append(c.env, "GIT_ALLOW_PROTOCOL="+to.protocol)
	if t.settings.CAFile != "" {
		c.config = append(c.config, "http.sslCAInfo", t.settings.CAFile)
		c.files = append(c.files, t.settings.CAFile)
	}
	switch to.protocol {
	case "https", "http":
		if proxy := t.proxy; proxy != nil {
			c.config = append(c.config, "http.proxy", proxy.String(), "http.proxyAuthMethod", "basic")
			// The proxy ends TLS itself for a host that it gives credentials to.
			if trusted := os.Getenv("GIT_SSL_CAINFO"); trusted != "" && t.settings.CAFile == "" {
				c.config = append(c.config, "http.sslCAInfo", trusted)
				c.files = append(c.files, trusted)
			}
		}
		return t.identify(ctx, to, c)
	case "ssh":
		ssh := &t.settings.SSH
		c.env = append(c.env, "GIT_SSH_COMMAND="+ssh.command(), "GIT_SSH_VARIANT=ssh")
		c.programs = append(append(c.programs, shells()...), ssh.Program, t.loaderOf(ssh.Program))
		c.files = append(c.files, ssh.KnownHosts, "/etc/ssh")
		if ssh.Key != "" {
			c.files = append(c.files, ssh.Key)
		}
	case "file": // git runs itself in the other repository with a shell
		c.programs = append(c.programs, shells()...)
		c.places = append(c.places, to.url)
		c.args = slices.Insert(c.args, 1, t.otherSide(to, c.args[0]))
	}
	return nil
}

// otherSide returns the option of a subcommand that makes git use fixedConfig when it
// runs itself in the repository of a remote that is a directory. Git does not pass this
// process's configuration on. Without the option, git would run the hooks of that
// repository, and its filters when it updates a checked-out branch.
func (t *transfer) otherSide(to *remote, subcommand string) string {
	option, verb := "--upload-pack=", "upload-pack"
	if subcommand == "push" {
		option, verb = "--receive-pack=", "receive-pack"
	}
	words := []string{quote(t.settings.Program)}
	for _, fixed := range append(fixedConfig(to.url), "receive.denyCurrentBranch=refuse", "receive.autoGC=false", "receive.procReceiveRefs=") {
		if fixed != "core.bare=false" {
			words = append(words, "-c", quote(fixed))
		}
	}
	return option + strings.Join(append(words, verb), " ")
}

// identify adds the credentials for the remote: a helper from the settings, or one that
// returns a secret.
func (t *transfer) identify(ctx context.Context, to *remote, c *command) error {
	known := t.settings.credential(to.url)
	if known == nil {
		return nil
	}
	u, err := url.Parse(to.url)
	if err != nil {
		return fmt.Errorf("parse the address: %w", err)
	}
	helper := "!" + quote(known.Helper)
	if known.Secret != "" {
		secret, err := t.call.Secret(ctx, known.Secret)
		if err != nil {
			return err
		}
		t.secret, t.secretName = secret, known.Secret
		// The secret is in the environment, not in the arguments, and only for this host.
		helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$TOOLHOST_GIT_USERNAME" "$TOOLHOST_GIT_PASSWORD"; }; f`
		c.env = append(c.env, "TOOLHOST_GIT_USERNAME="+cmp.Or(known.Username, "git"), "TOOLHOST_GIT_PASSWORD="+secret)
	} else {
		c.programs = append(c.programs, known.Helper, t.loaderOf(known.Helper))
	}
	c.config = append(c.config, "credential."+u.Scheme+"://"+u.Host+".helper", helper)
	c.programs = append(c.programs, shells()...)
	return nil
}

// quote quotes a text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// command returns the ssh command for git. It uses no configuration files, asks no
// questions and accepts only known hosts.
func (s *sshSettings) command() string {
	words := []string{
		quote(s.Program), "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=/dev/null",
		"-o", quote("UserKnownHostsFile=" + s.KnownHosts), "-o", "PermitLocalCommand=no", "-o", "ProxyCommand=none", "-o", "ClearAllForwardings=yes",
		"-o", "ForwardAgent=no", "-o", "UpdateHostKeys=no", "-o", "ConnectTimeout=30", "-o", "IdentityAgent=none", "-o", "IdentitiesOnly=yes",
	}
	if s.Key != "" {
		words = append(words, "-i", quote(s.Key))
	}
	return strings.Join(words, " ")
}

// runRemote runs a command that connects to the remote, for at most remote_timeout.
func (t *transfer) runRemote(ctx context.Context, to *remote, c command) (output, error) {
	if err := t.connect(ctx, to, &c); err != nil {
		return output{}, err
	}
	limited, cancel := context.WithTimeout(ctx, t.settings.Patience)
	defer cancel()
	out, err := t.run(limited, c)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return out, tool.Errorf(tool.Timeout, "The remote %s did not answer within %v", display.Name(to.name), t.settings.Patience).
			WithHint("try again later; the user can raise remote_timeout in the plugin's settings")
	}
	return out, err
}

// tracking returns the local reference for a branch of the remote.
func (to *remote) tracking(branch string) string { return "refs/remotes/" + to.name + "/" + branch }

// commitOrNone is exact, but returns "" if the reference does not exist.
func (r *repository) commitOrNone(ctx context.Context, ref string) (string, error) {
	id, err := r.exact(ctx, ref)
	if isMissing(err) {
		return "", nil
	}
	return id, err
}
