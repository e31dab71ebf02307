// Command web is a plugin that lets an agent use the web: fetch pages, search, and send
// requests to allowed hosts. It never reaches private networks, not even through a host
// name that later resolves to a private address.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// version is the version of the plugin.
const version = "1.0.0"

func main() {
	page.ServeChild() // does not return in a process that converts one document
	newPlugin(outside{}).Serve()
}

// newPlugin returns the plugin with its tools.
func newPlugin(o outside) *sdk.Plugin {
	p := sdk.New("web", version)
	w := &web{outside: o, stop: p.OnStop}
	sdk.Configure(p, func(ctx context.Context, cfg sdk.Config, s settings) error {
		if err := w.configure(ctx, cfg, s); err != nil {
			return err
		}
		w.addTools(p, cfg.NoNetwork, s.Search.Provider != "")
		return nil
	})
	return p
}

// addTools adds the tools. Without a network none is available, and web_search needs a search
// service, too.
func (w *web) addTools(p *sdk.Plugin, noNetwork, searches bool) {
	unavailable := ""
	if noNetwork {
		unavailable = `there is no network in this configuration; the administrator adds network { mode = "proxy" } to the sandbox block of the web plugin; toolhost doctor says what this machine lacks for it`
	}
	sdk.AddTool(p, described(tool.Spec{
		Name: "web_fetch", Aliases: []string{"fetch", "WebFetch"}, Tier: tool.SideEffecting, Idempotent: true, OpenWorld: true,
		MaxOutput: 32 * tool.KiB, Timeout: 2 * time.Minute, Unavailable: unavailable,
	}), with(w, webFetch))
	sdk.AddPlanned(p, described(tool.Spec{
		Name: "http_request", SearchHint: "REST API post", Tier: tool.Privileged, Destructive: true, OpenWorld: true,
		MaxOutput: 32 * tool.KiB, Timeout: 2 * time.Minute, Unavailable: unavailable,
		TierWhen: []tool.TierRule{
			{Property: "method", Equals: json.RawMessage(`"GET"`), Tier: tool.SideEffecting},
			{Property: "method", Equals: json.RawMessage(`"HEAD"`), Tier: tool.SideEffecting},
		},
	}), with(w, planRequest))
	sdk.AddTool(p, described(tool.Spec{
		Name: "web_links", Tier: tool.ReadOnly, Idempotent: true, MaxOutput: 32 * tool.KiB, Timeout: time.Minute, Unavailable: unavailable,
	}), with(w, webLinks))
	if unavailable == "" && !searches {
		unavailable = `no search service is configured; the administrator adds search = { provider = "searxng", url = "https://..." } ` +
			`to the config block of the web plugin, or the provider brave, tavily or kagi with its key as a secret`
	}
	sdk.AddTool(p, described(tool.Spec{
		Name: "web_search", Aliases: []string{"WebSearch"}, Tier: tool.SideEffecting, Idempotent: true, OpenWorld: true, MaxOutput: 32 * tool.KiB, Timeout: time.Minute,
		Unavailable: unavailable,
	}), with(w, webSearch))
}

//go:embed descriptions
var descriptions embed.FS

// described returns the spec with the description and category of the tool.
func described(spec tool.Spec) tool.Spec {
	spec.Description = sdk.Description(descriptions, spec.Name)
	spec.Category = "web"
	return spec
}

// web is the state that the tools share.
type web struct {
	outside outside
	stop    func(func())
	parts   atomic.Pointer[parts]
}

// errUnconfigured is the error of calls that arrive before the settings.
var errUnconfigured = tool.Errorf(tool.Unavailable, "the web plugin has no settings yet").WithRetry(0)

// with returns the function of a tool that calls run with the current parts.
func with[In, Out any](w *web, run func(context.Context, *parts, *sdk.Call, In) (Out, error)) func(context.Context, *sdk.Call, In) (Out, error) {
	return func(ctx context.Context, c *sdk.Call, in In) (Out, error) {
		p := w.parts.Load()
		if p == nil {
			var none Out
			return none, errUnconfigured
		}
		return run(ctx, p, c, in)
	}
}
