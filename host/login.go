package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// loggedIn is what `toolhost login --json` prints.
type loggedIn struct {
	URL string `json:"url"`
	httpapi.Identity
}

func (a *app) loginCommand() *cobra.Command {
	ca, fromStdin := "", false
	cmd := &cobra.Command{
		Use:   "login URL",
		Short: "Store a token for a host on another machine",
		Long: `Store a token for a host on another machine, after a check that the host accepts it.
On a terminal the command asks for the token and does not show it. Then --url URL makes
other commands use that host. The token is sent to no other host, and over TLS unless
the host is on this machine. It is stored in ~/.config/toolhost/logins, readable for
this account only.

On the host's machine, toolhost token new NAME --account any makes a token that is valid
from other machines.`,
		Example: `  toolhost login https://tools.example.com
  toolhost login https://tools.example.com:7780 --ca ca.pem --token-stdin < token`,
		Args: a.oneArgument("the URL of a host", ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			origin, err := client.Origin(args[0])
			if err != nil {
				return &usageError{err}
			}
			a.remote = origin
			return a.login(cmd.Context(), ca, fromStdin)
		},
	}
	cmd.Flags().StringVar(&ca, "ca", "", "PEM file with the certificates of the only authorities to trust for this host (default: those of the system, also after a login with --ca)")
	cmd.Flags().BoolVar(&fromStdin, "token-stdin", false, "read the token from standard input")
	return cmd
}

// login checks and stores a token for the host on another machine.
func (a *app) login(ctx context.Context, caFile string, fromStdin bool) error {
	dir, err := loginsDir()
	if err != nil {
		return err
	}
	login := client.Login{URL: a.remote}
	earlier, _ := client.ReadLogin(dir, a.remote) // one that cannot be read is replaced
	if caFile != "" {
		if login.CA, err = readCA(caFile); err != nil {
			return err
		}
	}
	if login.Token, err = a.readToken(ctx, fromStdin); err != nil {
		return err
	}
	c, err := client.New(client.Options{URL: login.URL, Token: login.Token, CA: login.CA, Name: "toolhost"})
	if err != nil {
		return err
	}
	defer c.Close()
	who, err := c.Identity(ctx)
	if err != nil {
		return a.remoteError(err)
	}
	if err := client.SaveLogin(dir, login); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(loggedIn{login.URL, who})
	}
	if _, err = fmt.Fprintf(a.stdout, "logged in to %s as %s (%s)\n", login.URL, line(who.User), line(strings.Join(who.Roles, ", "))); err != nil {
		return err
	}
	switch {
	case login.CA != "":
		_, err = fmt.Fprintf(a.stdout, "  trusts only the authorities in %s for this host\n", line(caFile))
	case earlier.CA != "":
		_, err = fmt.Fprintln(a.stdout, "  trusts the authorities of the system for this host; those of the earlier --ca are forgotten")
	}
	return err
}

// readCA reads the certificates of authorities.
func readCA(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO must not block
	if err != nil {
		return "", fmt.Errorf("--ca: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, client.MaxCA+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("--ca: %w", err)
	case len(text) > client.MaxCA:
		return "", fmt.Errorf("--ca: %s is larger than %d bytes", path, client.MaxCA)
	case !x509.NewCertPool().AppendCertsFromPEM(text):
		return "", fmt.Errorf("--ca: %s has no certificate in PEM format", path)
	}
	return string(text), nil
}

// readToken reads a token from the terminal, without showing it, or from standard input.
func (a *app) readToken(ctx context.Context, fromStdin bool) (token string, err error) {
	switch {
	case fromStdin:
		var text []byte
		text, err = io.ReadAll(io.LimitReader(a.stdin, client.MaxToken+1))
		token = string(text)
	case a.onTerminal():
		token, err = a.askSecret(ctx, "token for "+a.remote+": ")
	default:
		return "", &usageError{errors.New("there is no terminal to ask for the token: use --token-stdin")}
	}
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token = strings.TrimSpace(token)
	switch {
	case token == "":
		return "", errors.New("the token is empty")
	case len(token) > client.MaxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("that is not a token: expected one word of printable characters")
	}
	return token, nil
}

// askSecret asks for a line on the terminal and does not show what is typed.
func (a *app) askSecret(ctx context.Context, question string) (answer string, err error) {
	terminal := int(a.stdin.Fd())
	before, err := unix.IoctlGetTermios(terminal, getTermios)
	if err != nil {
		return "", err
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(terminal, setTermios, &quiet); err != nil {
		return "", err
	}
	defer func() {
		err = cmp.Or(err, unix.IoctlSetTermios(terminal, setTermios, before))
		fmt.Fprintln(a.stderr)
	}()
	if _, err := fmt.Fprint(a.stderr, question); err != nil {
		return "", err
	}
	return readLine(ctx, a.stdin, func() error { return nil })
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout URL",
		Short: "Remove the token for a host on another machine",
		Long: `Remove the stored token for a host on another machine. The token stays valid: toolhost
token revoke on the host, or with --url, ends it.`,
		Example: `  toolhost logout https://tools.example.com`,
		Args:    a.oneArgument("the URL of a host", ""),
		RunE: func(_ *cobra.Command, args []string) error {
			origin, err := client.Origin(args[0])
			if err != nil {
				return &usageError{err}
			}
			dir, err := loginsDir()
			if err != nil {
				return err
			}
			switch err := client.RemoveLogin(dir, origin); {
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("there is no token for %s", origin)
			case err != nil:
				return err
			}
			if a.json {
				return a.printJSON(loggedOut{origin})
			}
			_, err = fmt.Fprintf(a.stdout, "removed the token for %s; it stays valid until it is revoked or expires\n", origin)
			return err
		},
	}
}

// loggedOut is what `toolhost logout --json` prints.
type loggedOut struct {
	URL string `json:"url"`
}
