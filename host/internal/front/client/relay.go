package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/mcpserver"
)

// MCPConn is a connection on which a host serves MCP, one message per line, as on standard
// input and output.
type MCPConn struct {
	*net.UnixConn

	// Ephemeral reports that the host runs for one command only.
	Ephemeral bool

	answers *bufio.Reader
}

// Read implements [io.Reader].
func (c *MCPConn) Read(p []byte) (int, error) { return c.answers.Read(p) }

// DialMCP connects an MCP client to the host. The caller must close the
// connection.
func (c *Client) DialMCP(ctx context.Context) (*MCPConn, error) {
	dialed, err := auth.DialControl(ctx, c.opts.StateDir)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	conn, ok := dialed.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("relay MCP: the control socket is a %T", dialed), dialed.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ephemeral, answers, err := c.upgrade(ctx, conn)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close() // nothing is buffered
		return nil, err
	}
	return &MCPConn{conn, ephemeral, answers}, nil
}

// maxUpgrade bounds how long a host may take to switch a connection to MCP.
const maxUpgrade = 15 * time.Second

// upgrade switches the connection to MCP. It returns the messages of the host, and
// whether the host runs for one command only.
func (c *Client) upgrade(ctx context.Context, conn net.Conn) (ephemeral bool, answers *bufio.Reader, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/mcp/relay", nil)
	if err != nil {
		return false, nil, fmt.Errorf("relay MCP: %w", err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", mcpserver.RelayProtocol)
	c.authorize(req)
	err = conn.SetDeadline(time.Now().Add(maxUpgrade))
	if err == nil {
		err = req.Write(conn)
	}
	if err != nil {
		return false, nil, c.unreachable(ctx, err)
	}
	answers = bufio.NewReader(conn)
	response, err := http.ReadResponse(answers, req)
	if err != nil {
		return false, nil, c.unreachable(ctx, err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return false, nil, problem(response)
	}
	return response.Header.Get(mcpserver.EphemeralHeader) == "true", answers, nil
}
