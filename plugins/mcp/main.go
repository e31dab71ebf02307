// Command mcp is a plugin with the tools of one MCP server, which it starts in its own sandbox or
// reaches over HTTP. The server is not trusted: its definitions are checked and made visible, its
// annotations are claims, and all that it sends is bounded.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/plugins/mcp/internal/definition"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// version is the version of the plugin.
const version = "1.0.0"

func main() { newPlugin().Serve() }

// newPlugin returns the plugin, whose tools depend on its settings.
func newPlugin() *sdk.Plugin {
	p := sdk.New("mcp", version)
	sdk.Configure(p, func(ctx context.Context, cfg sdk.Config, s settings) error {
		return configure(ctx, p, cfg, s)
	})
	return p
}

// configure starts the server and offers its tools.
func configure(ctx context.Context, p *sdk.Plugin, cfg sdk.Config, s settings) error {
	wrong := errors.Join(s.mistakes(cfg.NoNetwork)...)
	if fatal(wrong) {
		return wrong
	}
	srv, err := newServer(ctx, p, cfg, s)
	if err != nil {
		return err
	}
	p.OnStop(srv.close)
	listed, err := srv.list(ctx)
	if err != nil {
		srv.close()
		return errors.Join(wrong, &sdk.SettingError{Path: []string{s.place()}, Unavailable: true, Summary: tool.AsError(err).Message, Detail: tool.AsError(err).Hint})
	}
	tools := srv.convert(listed)
	if wrong = errors.Join(wrong, errors.Join(s.toolMistakes(tools)...)); fatal(wrong) {
		srv.close()
		return wrong
	}
	if err := srv.offer(tools); err != nil {
		srv.close()
		return err
	}
	srv.running.Go(srv.follow) // ends with close
	return errors.Join(wrong, s.missing(listed))
}

// place returns the setting that says which server it is.
func (s *settings) place() string {
	if s.URL != "" {
		return "url"
	}
	return "command"
}

// missing warns of tools that the server lists and the plugin does not offer.
func (s *settings) missing(listed list) error {
	switch left := listed.total - len(listed.tools); {
	case listed.total == 0:
		return &sdk.SettingError{Path: []string{s.place()}, Warning: true, Summary: "the server lists no tools"}
	case listed.more:
		return &sdk.SettingError{Path: []string{s.place()}, Warning: true, Summary: fmt.Sprintf("the server's list of tools does not end: %d were read, and %d of them are offered", listed.total, len(listed.tools))}
	case left > 0:
		return &sdk.SettingError{Path: []string{s.place()}, Warning: true, Summary: fmt.Sprintf("the server lists %d tools, more than the %d of a plugin; %s left out", listed.total, definition.MaxTools, were(left))}
	}
	return nil
}

func were(n int) string {
	if n == 1 {
		return "1 tool is"
	}
	return display.Plural(n, "tool") + " are"
}

// fatal reports whether an error holds more than warnings.
func fatal(err error) bool {
	if err == nil {
		return false
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), fatal)
	}
	one, ok := errors.AsType[*sdk.SettingError](err)
	return !ok || !one.Warning
}

// convert returns the tools for the host, and logs those that it does not offer as they are.
func (s *server) convert(listed list) []definition.Tool {
	tools := definition.Convert(listed.tools, s.options)
	for _, t := range tools {
		if t.Spec.Unavailable != "" {
			s.log.Warn("a tool of the server is not offered", "tool", t.Spec.Name, "server_name", display.Visible(display.Cut(t.Original, maxLogged)), "reason", t.Spec.Unavailable)
		}
	}
	return tools
}

// offer makes the tools those of the plugin.
func (s *server) offer(tools []definition.Tool) error {
	raw := make([]sdk.RawTool, len(tools))
	for i, t := range tools {
		raw[i] = sdk.RawTool{Spec: t.Spec, Run: func(ctx context.Context, c *sdk.Call, arguments json.RawMessage) (tool.Result, error) {
			return s.call(ctx, c, t, arguments)
		}}
	}
	if err := sdk.SetRawTools(s.plugin, raw); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered = tools
	return nil
}

// prefix returns how the names of tools begin.
func (s *settings) prefix(block string) string {
	if s.Prefix != nil {
		return *s.Prefix
	}
	return display.Head(underscored(cmp.Or(block, "mcp")), definition.MaxPrefix)
}

// underscored returns the name of a block as the name of a tool allows it.
func underscored(name string) string {
	mapped := []byte(name)
	for i, c := range mapped {
		if c == '-' {
			mapped[i] = '_'
		}
	}
	return string(mapped)
}
