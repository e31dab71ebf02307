package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/relay"
)

func (a *app) mcpCommand() *cobra.Command {
	var tokenFile string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve tools to an MCP client on standard input and output",
		Long: `Serve tools to an MCP client on standard input and output, one JSON-RPC message per
line. The MCP client starts this command. It supports every protocol revision. If a
host runs with the same configuration, the command connects the client to it, and
when that host ends, to the next one or to a host in this process. Calls run as the
local user or, with --token-file, as the token's user; a token with elicitation lets
the client ask its own user for approval. Logs go to standard error.`,
		Example: `  toolhost mcp --config /etc/toolhost/
  toolhost mcp --token-file ~/.config/toolhost/claude-code.token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token := ""
			if tokenFile != "" {
				var err error
				if token, err = auth.ReadToken(tokenFile); err != nil {
					return err
				}
			}
			a.logLevel = cmp.Or(a.logLevel, "warn") // only the log shows what happens between calls
			if isTerminal(a.stdin) {
				fmt.Fprintf(a.stderr, "toolhost: waiting for an MCP client on standard input; to try a tool by hand: %s\n", a.command("call --help"))
			}
			return a.serveMCP(cmd.Context(), token)
		},
	}
	cmd.AddCommand(a.mcpAddCommand(), a.mcpImportCommand(), a.mcpListCommand(), a.mcpUpdateCommand(), a.mcpRemoveCommand())
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "a file that holds a configured token and that only its owner can read")
	return cmd
}

// serveMCP connects the client to the host that owns the state directory, or becomes that
// host. When that host ends, the client stays connected to the next one. With an empty token,
// the client is an agent of the local user.
func (a *app) serveMCP(ctx context.Context, token string) error {
	stateDir, err := a.stateDir()
	if err != nil {
		return err
	}
	s := &mcpService{app: a, stateDir: stateDir, token: token, relay: relay.New(a.stdin, a.stdout)}
	defer s.relay.Close()
	for early := 0; ; {
		began := time.Now()
		err := a.lockOrJoin(ctx, stateDir, forClients, func() error { return s.asGuest(ctx) }, func(d *daemon.Daemon) error { return s.asHost(ctx, d) })
		if isStatus(err, http.StatusServiceUnavailable) && ctx.Err() == nil { // it is stopping
			if s.clientLeft() || pause(ctx, retryTakeover) != nil {
				return nil
			}
			continue
		}
		gone := errors.Is(err, relay.ErrGone)
		if !gone && !hostGone(err) || ctx.Err() != nil {
			return err
		}
		if early++; gone && s.ephemeral || errors.Is(err, relay.ErrStopped) || time.Since(began) > shortLife {
			early = 0 // this client was not the cause
		}
		if early == maxHosts {
			return fmt.Errorf("%w; so have %d others before it, one after the other", err, early-1)
		}
		if !s.awaitHost(ctx) {
			return nil
		}
	}
}

const (
	// shortLife is how long a host must serve so that its end does not count. The client gives
	// up after maxHosts shorter-lived hosts in a row.
	shortLife = time.Minute
	// hostWait is how long this process waits for the next host before it becomes the host
	// itself, so that a restarted host keeps its clients. It does not wait after an ephemeral
	// host: the next command would be one, too, and the client might never reach a host that
	// stays.
	hostWait = time.Second
)

// mcpService serves the client of this process.
type mcpService struct {
	app       *app
	stateDir  string
	token     string
	relay     *relay.Relay
	ephemeral bool // the last host ran for one command only
}

// asGuest has the host that owns the state directory serve the client.
func (s *mcpService) asGuest(ctx context.Context) error {
	c, err := client.New(client.Options{StateDir: s.stateDir, Token: s.token})
	if err != nil {
		return err
	}
	defer c.Close()
	conn, err := c.DialMCP(ctx)
	if err != nil {
		return err
	}
	s.ephemeral = conn.Ephemeral
	return s.relay.Serve(ctx, conn)
}

// asHost has a host in this process serve the client over its control socket, so that the
// client stays connected when this host makes room for the next.
func (s *mcpService) asHost(ctx context.Context, d *daemon.Daemon) error {
	if err := d.ServeControl(ctx); err != nil {
		return err
	}
	err := d.StartFor(ctx, func(serving context.Context) error {
		err := s.asGuest(serving)
		if err == nil && serving.Err() != nil {
			return relay.ErrStopped // before the client has read its answers
		}
		return err
	})
	if ctx.Err() != nil && (errors.Is(err, relay.ErrGone) || hostGone(err)) {
		return nil
	}
	return err
}

// awaitHost waits up to hostWait for the next host; after an ephemeral one it does not wait.
// It returns false if the client has left or ctx has ended.
func (s *mcpService) awaitHost(ctx context.Context) bool {
	if s.ephemeral {
		return !s.clientLeft() && pause(ctx, retryTakeover) == nil
	}
	fmt.Fprint(s.app.stderr, "toolhost: the connection to the host ended; connecting to the next one\n")
	waiting, cancel := context.WithTimeout(ctx, hostWait)
	defer cancel()
	for !answers(waiting, s.stateDir) && pause(waiting, retryTakeover) == nil {
		if s.clientLeft() {
			return false
		}
	}
	return ctx.Err() == nil
}

// clientLeft reports whether the client has closed its side.
func (s *mcpService) clientLeft() bool {
	select {
	case <-s.relay.Left():
		return true
	default:
		return false
	}
}
