package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// serving is what `toolhost serve --json` prints when it is ready.
type serving struct {
	StateDir string `json:"state_dir"`
	URL      string `json:"url,omitempty"`
	MCP      string `json:"mcp_url,omitempty"`
	Token    string `json:"token_file,omitempty"`
	// Stops are the stops of admins in force.
	Stops []killswitch.Stop `json:"stops,omitempty"`
	// Pending is how many tools wait to be accepted, by plugin.
	Pending map[string]int `json:"pending,omitempty"`
}

// greet prints how to reach the host in this process, and what to type first. address is
// where it is reached over HTTP; "" means nowhere.
func (a *app) greet(ctx context.Context, address string) error {
	stateDir, err := a.stateDir()
	if err != nil {
		return err
	}
	view := serving{StateDir: stateDir}
	if address != "" {
		view.URL, view.MCP, view.Token = address, address+mcpPath, filepath.Join(stateDir, auth.AgentKey)
	}
	if err := a.asApprover(ctx, func(c *client.Client) (err error) {
		if view.Stops, err = c.Stops(ctx); err != nil {
			return err
		}
		plugins, err := c.Plugins(ctx)
		for _, p := range plugins {
			if pending := p.Pending(); pending > 0 {
				if view.Pending == nil {
					view.Pending = map[string]int{}
				}
				view.Pending[p.Name] = pending
			}
		}
		return err
	}); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(view)
	}
	_, err = fmt.Fprint(a.stdout, a.greeting(view, a.firstCalls(ctx)))
	return err
}

// maxGreeted bounds the stops that the greeting names.
const maxGreeted = 5

// greeting returns the text for a person when the host is ready.
func (a *app) greeting(view serving, first []firstCall) string {
	var b strings.Builder
	add := func(what, text string) { fmt.Fprintf(&b, "  %-9s%s\n", what, text) }
	names := clientNames()
	b.WriteString("toolhost is serving\n")
	if view.URL != "" {
		add("MCP", view.MCP)
		add("REST", view.URL+"/v1")
		if isLoopbackURL(view.URL) {
			add("token", line(view.Token))
		} else {
			add("token", a.command("token new NAME --account any")+" # "+auth.AgentKey+" is for loopback addresses")
		}
	} else {
		add("MCP", "the client starts: "+a.command("mcp"))
	}
	for _, stop := range view.Stops[:min(len(view.Stops), maxGreeted)] {
		add("stopped", line(stop.String()))
	}
	if len(view.Stops) > 0 {
		add("resume", a.command("resume")+" # "+a.command("stop-all --list")+" shows all stops")
	}
	for _, plugin := range slices.Sorted(maps.Keys(view.Pending)) {
		add("pending", a.pendingLine(plugin, view.Pending[plugin]))
	}
	b.WriteString(a.elsewhere())
	add("agent", a.command("connect "+names[0])+" # or "+strings.Join(names[1:], ", "))
	for _, call := range first {
		add(call.what, a.command("call "+call.words))
	}
	add("approve", a.command("approvals approve"))
	if view.URL != "" {
		add("console", a.command("console")+" # waiting calls in a browser")
	}
	add("tools", a.command("tools"))
	return b.String()
}

// elsewhere says where the commands of the greeting can be typed: they may name the program or the
// configuration by a relative path, or find it by the working directory.
func (a *app) elsewhere() string {
	if filepath.IsAbs(a.configPath) && (filepath.IsAbs(a.program) || !strings.Contains(a.program, "/")) {
		return "in another terminal\n"
	}
	return "in another terminal, in this directory\n"
}

// isLoopbackURL reports whether a URL has a loopback address or localhost.
func isLoopbackURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && auth.IsLoopback(u.Hostname())
}

// firstCall is an example call for a new user of this host.
type firstCall struct{ what, words string }

// firstCalls returns a call that reads and runs at once, and one that changes something and
// waits for a person. Both have few arguments, come from the first plugin that has such a
// tool, and stay on this machine. The host knows no tool by name, so it examines the offered
// tools.
func (a *app) firstCalls(ctx context.Context) (calls []firstCall) {
	_ = a.asAgent(ctx, func(c *client.Client) error { // after an error there are no examples
		tools, err := c.Tools(ctx)
		if err != nil {
			return err
		}
		tools = toTry(tools)
		slices.SortStableFunc(tools, func(a, b httpapi.Tool) int { return strings.Compare(a.Plugin, b.Plugin) })
		is := func(t httpapi.Tool, words []string, verdict policy.Verdict) bool {
			arguments, err := a.arguments(words)
			if err != nil {
				return false
			}
			e, err := c.Explain(ctx, client.Call{Tool: t.Name, Arguments: arguments})
			return err == nil && e.Verdict == verdict
		}
		for _, want := range []struct {
			what     string
			readOnly bool
			verdict  policy.Verdict
		}{{"read", true, policy.Allow}, {"write", false, policy.Ask}} {
			counts := []int{0, 1} // of arguments
			if !want.readOnly {
				counts = []int{1, 0} // a change without arguments is rarely what it seems
			}
			words := simplest(tools, counts, func(t httpapi.Tool, words []string) bool {
				return (t.Tier == tool.ReadOnly) == want.readOnly && is(t, words, want.verdict)
			})
			if len(words) > 0 {
				calls = append(calls, firstCall{want.what, line(strings.Join(words, " "))})
			}
		}
		return nil
	})
	return calls
}

// toTry returns the tools that a new user may try: those of plugins that stay on this machine. The
// host's own tools are about other calls.
func toTry(tools []httpapi.Tool) []httpapi.Tool {
	return slices.DeleteFunc(tools, func(t httpapi.Tool) bool { return t.OpenWorld || t.Plugin == catalog.HostPlugin })
}

// simplest returns a call of the first matching tool with one of the counts of required
// arguments, in this order. Destructive tools come last.
func simplest(tools []httpapi.Tool, counts []int, fits func(httpapi.Tool, []string) bool) (words []string) {
	for _, destructive := range []bool{false, true} {
		for _, count := range counts {
			for _, t := range tools {
				if pairs, ok := example(t); ok && t.Destructive == destructive && len(pairs) == count && fits(t, pairs) {
					return append([]string{t.Name}, pairs...)
				}
			}
		}
	}
	return nil
}

// example returns arguments for a tool that requires only strings.
func example(t httpapi.Tool) (pairs []string, ok bool) {
	var schema struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type any `json:"type"` // a type or a list of types
		} `json:"properties"`
	}
	if json.Unmarshal(t.InputSchema, &schema) != nil {
		return nil, false
	}
	for _, name := range schema.Required {
		if schema.Properties[name].Type != "string" {
			return nil, false
		}
		pairs = append(pairs, name+"=example")
	}
	return pairs, true
}
