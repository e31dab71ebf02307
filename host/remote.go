package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// localCommands are the commands that work with the files of this machine, or with no host. Those
// of a group count as the group.
func localCommands() []string {
	return []string{"completion", "connect", "doctor", "help", "init", "login", "logout", "mcp", "policy", "sandbox", "serve", "token new", "validate", "version"}
}

// isLocal reports whether a command is one of [localCommands].
func isLocal(cmd *cobra.Command) bool {
	words := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return slices.ContainsFunc(localCommands(), func(local string) bool {
		return words == local || strings.HasPrefix(words, local+" ")
	})
}

// chooseHost decides whether a command is for a host on another machine. TOOLHOST_URL has no
// effect on a command of this machine.
func (a *app) chooseHost(cmd *cobra.Command) error {
	switch {
	case !isLocal(cmd):
		return a.chooseRemote()
	case a.url != "":
		return &usageError{fmt.Errorf("--url does not apply to %s, which works with this machine: leave it out", cmd.CommandPath())}
	}
	return nil
}

// chooseRemote sets the host on another machine, if the flag or the environment names one. A flag
// comes before the environment.
func (a *app) chooseRemote() error {
	address, from := a.url, "--url"
	switch {
	case address != "" && a.configPath != "":
		return &usageError{errors.New("--url and --config exclude each other: a host on another machine has its own configuration")}
	case address == "" && a.configPath == "":
		address, from = os.Getenv("TOOLHOST_URL"), "TOOLHOST_URL"
	}
	if address == "" {
		return nil
	}
	origin, err := client.Origin(address)
	if err != nil {
		return &usageError{fmt.Errorf("%s: %w", from, err)}
	}
	a.remote = origin
	return nil
}

// loginsDir returns the directory of the user's logins.
func loginsDir() (string, error) {
	dir := config.LoginsDir(nil)
	if dir == "" {
		return "", errors.New("there is no place for logins: neither XDG_CONFIG_HOME nor HOME is an absolute path")
	}
	return dir, nil
}

// remoteClient returns a client of the host on another machine, with its token from [app.givenToken]
// or else the one that is stored for it. The token goes to that host only.
func (a *app) remoteClient() (*client.Client, error) {
	dir, err := loginsDir()
	if err != nil {
		return nil, err
	}
	login, err := client.ReadLogin(dir, a.remote)
	token := a.givenToken()
	switch {
	case errors.Is(err, fs.ErrNotExist) && token == "" && os.Getenv("TOOLHOST_TOKEN") != "":
		return nil, &hintError{
			fmt.Errorf("there is no token for %s: TOOLHOST_TOKEN is for the host of TOOLHOST_URL alone", a.remote),
			"set TOOLHOST_URL to that address too, or store a token: " + a.loginHint(),
		}
	case errors.Is(err, fs.ErrNotExist) && token == "":
		return nil, &hintError{fmt.Errorf("there is no token for %s", a.remote), a.loginHint() + " stores one"}
	case errors.Is(err, fs.ErrNotExist): // the system's authorities have to do
	case err != nil:
		return nil, &hintError{err, a.loginHint() + " stores another one"}
	}
	if token == "" {
		token = login.Token
	}
	return client.New(client.Options{URL: a.remote, Token: token, CA: login.CA, Name: "toolhost", Session: "cli"})
}

// givenToken returns TOOLHOST_TOKEN if it is for the host that was chosen: the one of TOOLHOST_URL.
// Otherwise --url would send a secret to a host that it is not for.
func (a *app) givenToken() string {
	if of, err := client.Origin(os.Getenv("TOOLHOST_URL")); err != nil || of != a.remote {
		return ""
	}
	return os.Getenv("TOOLHOST_TOKEN")
}

// loginHint is the command that stores a token.
func (a *app) loginHint() string {
	here := app{program: a.program}
	return here.command("login " + shellQuoted(a.remote))
}

// withRemote calls f with a client of the host on another machine.
func (a *app) withRemote(f func(*client.Client) error) error {
	c, err := a.remoteClient()
	if err != nil {
		return err
	}
	defer c.Close()
	return a.remoteError(f(c))
}

// remoteError adds to an error of a host on another machine what to do.
func (a *app) remoteError(err error) error {
	if a.remote == "" || err == nil {
		return err
	}
	problem, refused := errors.AsType[*httpapi.Problem](err)
	switch {
	case refused && problem.Status == http.StatusUnauthorized:
		return &hintError{fmt.Errorf("%s refuses the token: %s", a.remote, problem.Detail), a.loginHint() + " stores another one"}
	case errors.Is(err, client.ErrUntrusted):
		return &hintError{err, a.trustHint(err)}
	case errors.Is(err, client.ErrNoHost):
		return &hintError{err, "check the address, that the host runs, and that it listens where this machine reaches it (server.listen in its configuration)"}
	}
	return err
}

// trustHint says what to do about a host that is not trusted.
func (a *app) trustHint(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "if an authority of your own has issued it: " + a.loginHint() + " --ca FILE"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "use a name that the certificate has, or give the host a certificate for this name"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "renew the certificate of the host, or check the clock of this machine"
	}
	return "check the address; the host serves https if its configuration has server.tls"
}

// betweenTries is the interval of attempts to reach a host that does not answer.
func (a *app) betweenTries() time.Duration {
	if a.remote != "" {
		return 2 * time.Second
	}
	return betweenHosts
}
