package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/mcpserver"
)

// RelayMCP connects a pair of streams to the host that holds a state directory,
// so that the client behind them is served by that host. It returns when the
// client has closed in and has all its answers, or when ctx ends; with an error
// if the host ends the connection before.
func (c *Client) RelayMCP(ctx context.Context, in io.Reader, out io.Writer) error {
	conn, err := auth.DialControl(ctx, c.opts.StateDir)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer func() { _ = conn.Close() }() // nothing is left to lose
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()

	answers, err := c.upgrade(ctx, conn)
	if err != nil {
		return err
	}
	finished := make(chan struct{}) // closed when the client has closed in
	go func() {                     // ends with in, or with the process: a read of standard input cannot be interrupted
		if _, err := io.Copy(conn, in); err != nil {
			return // the answers tell why
		}
		close(finished)
		if half, ok := conn.(*net.UnixConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err = io.Copy(out, answers)
	select {
	case <-finished:
	default:
		if err == nil || errors.Is(err, syscall.ECONNRESET) {
			err = errHostGone
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("relay MCP: %w", err)
	}
	return nil
}

// errHostGone ends a relay whose client is still there.
var errHostGone = errors.New("the host that served this client has ended; connect again, and another one takes its place")

// upgrade makes the connection MCP's and returns what the host says on it.
func (c *Client) upgrade(ctx context.Context, conn net.Conn) (io.Reader, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/mcp/relay", nil)
	if err != nil {
		return nil, fmt.Errorf("relay MCP: %w", err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", mcpserver.RelayProtocol)
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("relay MCP: %w", err)
	}
	answers := bufio.NewReader(conn)
	response, err := http.ReadResponse(answers, req)
	if err != nil {
		return nil, fmt.Errorf("relay MCP: %w", err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, problem(response)
	}
	return answers, nil
}
