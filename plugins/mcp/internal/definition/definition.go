// Package definition turns the tools that an MCP server lists into tools of a plugin. What the
// server writes is untrusted: names become valid and stay apart, every character of a text is
// visible, annotations are claims. A tool that cannot be offered as it is stays in the list with the
// reason, and is never dropped silently.
package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits of what a host accepts.
const (
	// MaxTools is the number of tools of one plugin.
	MaxTools = 500
	// MaxPrefix is the length of a prefix, which leaves room for names.
	MaxPrefix = 32
	// maxAll is the size of the schemas of all tools, which fit into one message to the host.
	maxAll = 16 << 20

	maxDescription = 16<<10 - len("…")
	maxTitle       = 256 - len("…")
	maxReason      = 512 - len("…")
)

// Options say how the administrator wants the tools.
type Options struct {
	// Prefix begins the names; "" means none.
	Prefix string
	// Roles maps the server's names of tools and arguments to roles.
	Roles map[string]map[string]string
	// Idempotent lists the server's names of tools whose claim to be idempotent counts.
	Idempotent []string
	// Timeout is the time for one call; 0 means the host's default.
	Timeout time.Duration
}

// Tool is one tool of a server.
type Tool struct {
	// Original is the server's name of the tool.
	Original string
	// Spec is the definition for the host. Unavailable says why the tool cannot be called.
	Spec tool.Spec
	// Role is set if a role names an argument that the tool does not have.
	Role *RoleError
}

// Convert returns the tools for the host, in the order of the server. Tools whose names become the
// same are refused, all of them. Convert changes the schemas of the listed tools.
func Convert(listed []*mcp.Tool, opts Options) []Tool {
	originals := make(map[string][]string)
	for _, t := range listed {
		name := Name(opts.Prefix, t.Name)
		originals[name] = append(originals[name], t.Name)
	}
	tools := make([]Tool, 0, len(listed))
	size := 0
	for _, t := range listed {
		name := Name(opts.Prefix, t.Name)
		switch same := originals[name]; {
		case len(same) == 0: // refused with its twin
		case len(same) > 1:
			tools = append(tools, refused(t, name, fmt.Errorf("%s of the server have the same name here: %s", display.Plural(len(same), "tool"), display.Names(same))))
			delete(originals, name)
		default:
			one := convert(t, name, opts)
			if size += len(one.Spec.InputSchema) + len(one.Spec.OutputSchema); size > maxAll {
				one = refused(t, name, fmt.Errorf("the schemas of the server's tools are larger than %s in all", tool.ByteSize(maxAll)))
			}
			tools = append(tools, one)
		}
	}
	return tools
}

// convert returns one tool.
func convert(t *mcp.Tool, name string, opts Options) Tool {
	in, err := input(t.InputSchema, opts.Roles[t.Name])
	if err != nil {
		return refused(t, name, err)
	}
	out, err := output(t.OutputSchema)
	if err != nil {
		return refused(t, name, fmt.Errorf("in its results: %w", err))
	}
	spec := described(t, name)
	spec.InputSchema, spec.OutputSchema, spec.Timeout = in, out, opts.Timeout
	claim(&spec, t.Annotations, slices.Contains(opts.Idempotent, t.Name))
	return Tool{Original: t.Name, Spec: spec}
}

// described returns the texts of a tool.
func described(t *mcp.Tool, name string) tool.Spec {
	title := t.Title
	if title == "" && t.Annotations != nil {
		title = t.Annotations.Title
	}
	if title == "" && name != t.Name {
		title = t.Name // what the server calls it
	}
	description := strings.TrimSpace(t.Description)
	if description == "" {
		description = "The server does not describe this tool."
	}
	return tool.Spec{
		Name: name, Foreign: true, Tier: tool.SideEffecting,
		Title:       display.Cut(line(title), maxTitle),
		Description: display.Cut(display.Visible(description), maxDescription),
	}
}

// claim sets what the annotations say. What they leave out counts as the worst.
func claim(spec *tool.Spec, a *mcp.ToolAnnotations, repeatable bool) {
	if a == nil {
		a = new(mcp.ToolAnnotations)
	}
	spec.OpenWorld = a.OpenWorldHint == nil || *a.OpenWorldHint
	if a.ReadOnlyHint {
		spec.Tier = tool.ReadOnly
		return
	}
	spec.Destructive = a.DestructiveHint == nil || *a.DestructiveHint
	spec.Idempotent = a.IdempotentHint && repeatable
}

// refused returns a tool that cannot be called.
func refused(t *mcp.Tool, name string, reason error) Tool {
	spec := described(t, name)
	spec.InputSchema = json.RawMessage(`{"type":"object"}`)
	spec.Unavailable = display.Cut(line(reason.Error()), maxReason)
	role, _ := errors.AsType[*RoleError](reason)
	return Tool{Original: t.Name, Spec: spec, Role: role}
}

// line returns a text on one line.
func line(text string) string {
	return strings.ReplaceAll(display.Line(text).String(), "\t", " ")
}
