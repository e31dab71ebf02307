package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// Plugins lists the plugins.
func (c *Client) Plugins(ctx context.Context) ([]httpapi.Plugin, error) {
	var plugins []httpapi.Plugin
	err := c.do(ctx, request{method: "GET", path: "/v1/plugins"}, &plugins)
	return plugins, err
}

// Plugin returns one plugin.
func (c *Client) Plugin(ctx context.Context, name string) (httpapi.Plugin, error) {
	var plugin httpapi.Plugin
	err := c.do(ctx, request{method: "GET", path: "/v1/plugins/" + url.PathEscape(name)}, &plugin)
	return plugin, err
}

// Tokens lists the tokens that count over HTTP.
func (c *Client) Tokens(ctx context.Context) ([]httpapi.Token, error) {
	var tokens []httpapi.Token
	err := c.do(ctx, request{method: "GET", path: "/v1/tokens"}, &tokens)
	return tokens, err
}

// RevokeToken makes the tokens with a name end after a grace.
func (c *Client) RevokeToken(ctx context.Context, name string, grace time.Duration) (httpapi.RevokedToken, error) {
	var revoked httpapi.RevokedToken
	err := c.do(ctx, request{
		method: "POST", path: "/v1/tokens/" + url.PathEscape(name) + "/revoke",
		body: map[string]string{"grace": grace.String()},
	}, &revoked)
	return revoked, err
}

// RestartPlugin stops a plugin if it runs and starts it, and returns it as it
// is then.
func (c *Client) RestartPlugin(ctx context.Context, name string) (httpapi.Plugin, error) {
	var plugin httpapi.Plugin
	err := c.do(ctx, request{method: "POST", path: "/v1/plugins/" + url.PathEscape(name) + "/restart"}, &plugin)
	return plugin, err
}

// Reload makes the host read its configuration again. If it is refused, the
// error says why, and the one before goes on. accept is the digest of one that a
// plugin may have changed and that is meant all the same, "" for none.
func (c *Client) Reload(ctx context.Context, accept string) error {
	path := "/v1/reload"
	if accept != "" {
		path += "?accept=" + url.QueryEscape(accept)
	}
	return c.do(ctx, request{method: "POST", path: path}, &struct{}{})
}

// HandOver asks the host to make room for one that stays. If it is to stay itself, it
// refuses.
func (c *Client) HandOver(ctx context.Context) (httpapi.Handover, error) {
	var handover httpapi.Handover
	err := c.do(ctx, request{method: "POST", path: "/v1/handover"}, &handover)
	return handover, err
}

// Health returns how the host is, healthy or not.
func (c *Client) Health(ctx context.Context) (httpapi.Health, error) {
	return c.health(ctx, "/healthz")
}

// Readiness returns whether the tools of all plugins are known and calls can be
// recorded.
func (c *Client) Readiness(ctx context.Context) (httpapi.Health, error) {
	return c.health(ctx, "/readyz")
}

func (c *Client) health(ctx context.Context, path string) (httpapi.Health, error) {
	var health httpapi.Health
	err := c.do(ctx, request{method: "GET", path: path, also: http.StatusServiceUnavailable}, &health)
	return health, err
}

// Journal returns rows of the journal.
func (c *Client) Journal(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"call": q.Call, "tool": q.Tool, "plugin": q.Plugin, "user": q.User, "session": q.Session, "status": q.Status,
		"since": timeText(q.Since), "until": timeText(q.Until),
		"before": numberText(q.Before), "after": numberText(q.After), "limit": numberText(int64(q.Limit)),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.OldestFirst {
		query.Set("order", "oldest")
	}
	var rows []journal.Record
	err := c.do(ctx, request{method: "GET", path: "/v1/journal", query: query}, &rows)
	return rows, err
}

// VerifyJournal makes the host read its whole journal and report what is not
// as it wrote it.
func (c *Client) VerifyJournal(ctx context.Context) (journal.Report, error) {
	var report journal.Report
	err := c.do(ctx, request{method: "GET", path: "/v1/journal/verify"}, &report)
	return report, err
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
