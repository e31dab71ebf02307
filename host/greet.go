package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// serving is what `toolhost serve --json` prints when it is ready.
type serving struct {
	StateDir string `json:"state_dir"`
	URL      string `json:"url,omitempty"`
	MCP      string `json:"mcp_url,omitempty"`
	Token    string `json:"token_file,omitempty"`
}

// greet says how the host in this process is reached, and what to type first.
func (a *app) greet(ctx context.Context, address string) error {
	stateDir, err := a.stateDir()
	if err != nil {
		return err
	}
	view := serving{StateDir: stateDir}
	if address != "" {
		view.URL, view.MCP, view.Token = "http://"+address, mcpURL(address), filepath.Join(stateDir, auth.AgentKey)
	}
	if a.json {
		return a.printJSON(view)
	}
	_, err = fmt.Fprint(a.stdout, a.greeting(view, a.firstCalls(ctx)))
	return err
}

// greeting is what a person reads when the host is ready.
func (a *app) greeting(view serving, first []firstCall) string {
	var b strings.Builder
	add := func(what, text string) { fmt.Fprintf(&b, "  %-9s%s\n", what, text) }
	names := clientNames()
	b.WriteString("toolhost is serving\n")
	if view.URL != "" {
		add("MCP", view.MCP)
		add("REST", view.URL+"/v1")
		add("token", line(view.Token))
	} else {
		add("MCP", "the client starts: "+a.command("mcp"))
	}
	b.WriteString("in another terminal\n")
	add("agent", a.command("connect "+names[0])+" # or "+strings.Join(names[1:], ", "))
	for _, call := range first {
		add(call.what, a.command("call "+call.words))
	}
	add("approve", a.command("approvals approve"))
	add("tools", a.command("tools"))
	return b.String()
}
