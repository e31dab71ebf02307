package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
)

// Identity returns who the client is for the host.
func (c *Client) Identity(ctx context.Context) (httpapi.Identity, error) {
	return get[httpapi.Identity](ctx, c, "/v1/caller", nil)
}

// Plugins lists the plugins.
func (c *Client) Plugins(ctx context.Context) ([]httpapi.Plugin, error) {
	return get[[]httpapi.Plugin](ctx, c, "/v1/plugins", nil)
}

// Plugin returns one plugin.
func (c *Client) Plugin(ctx context.Context, name string) (httpapi.Plugin, error) {
	return get[httpapi.Plugin](ctx, c, "/v1/plugins/"+url.PathEscape(name), nil)
}

// RestartPlugin stops a plugin if it runs, starts it, and returns its new state.
func (c *Client) RestartPlugin(ctx context.Context, name string) (httpapi.Plugin, error) {
	return post[httpapi.Plugin](ctx, c, "/v1/plugins/"+url.PathEscape(name)+"/restart", nil)
}

// Definitions compares the definitions of a plugin's tools with those that were accepted: of the tools
// with these names, or of all that are not accepted.
func (c *Client) Definitions(ctx context.Context, plugin string, tools ...string) (httpapi.Definitions, error) {
	var query url.Values
	if len(tools) > 0 {
		query = url.Values{"tools": {strings.Join(tools, ",")}}
	}
	return get[httpapi.Definitions](ctx, c, "/v1/plugins/"+url.PathEscape(plugin)+"/definitions", query)
}

// AcceptDefinitions accepts the definitions that [Client.Definitions] has returned with this digest
// and these tools, and returns them.
func (c *Client) AcceptDefinitions(ctx context.Context, plugin, digest string, tools ...string) (httpapi.Definitions, error) {
	return post[httpapi.Definitions](ctx, c, "/v1/plugins/"+url.PathEscape(plugin)+"/definitions/accept",
		map[string]string{"digest": digest, "tools": strings.Join(tools, ",")})
}

// TestNotifier delivers a test message of a notifier.
func (c *Client) TestNotifier(ctx context.Context, name string) (httpapi.Notified, error) {
	return post[httpapi.Notified](ctx, c, "/v1/notifiers/"+url.PathEscape(name)+"/test", nil)
}

// Stops lists the stops in force, the oldest first.
func (c *Client) Stops(ctx context.Context) ([]killswitch.Stop, error) {
	return get[[]killswitch.Stop](ctx, c, "/v1/stops", nil)
}

// Stop stops the calls of a scope. The error means that nothing was stopped.
func (c *Client) Stop(ctx context.Context, scope killswitch.Scope, reason string) (httpapi.Stopped, error) {
	return post[httpapi.Stopped](ctx, c, "/v1/stops", struct {
		killswitch.Scope

		Reason string `json:"reason,omitempty"`
	}{scope, reason})
}

// Resume ends a stop.
func (c *Client) Resume(ctx context.Context, id string) (killswitch.Stop, error) {
	return ask[killswitch.Stop](ctx, c, request{method: http.MethodDelete, path: "/v1/stops/" + url.PathEscape(id)})
}

// Tokens lists the tokens that are valid over HTTP.
func (c *Client) Tokens(ctx context.Context) ([]httpapi.Token, error) {
	return get[[]httpapi.Token](ctx, c, "/v1/tokens", nil)
}

// RevokeToken revokes the tokens with a name after a grace period.
func (c *Client) RevokeToken(ctx context.Context, name string, grace time.Duration) (httpapi.RevokedToken, error) {
	return post[httpapi.RevokedToken](ctx, c, "/v1/tokens/"+url.PathEscape(name)+"/revoke", map[string]string{"grace": grace.String()})
}

// Reload makes the host reload its configuration. If the host refuses, the error says
// why, and the host keeps the old one. accept is the digest of a configuration that a
// plugin may have changed and a person has reviewed, or "".
func (c *Client) Reload(ctx context.Context, accept string) error {
	path := "/v1/reload"
	if accept != "" {
		path += "?accept=" + url.QueryEscape(accept)
	}
	_, err := post[struct{}](ctx, c, path, nil)
	return err
}

// HandOver asks the host to make room for a permanent one. A permanent host refuses.
func (c *Client) HandOver(ctx context.Context) (httpapi.Handover, error) {
	return post[httpapi.Handover](ctx, c, "/v1/handover", nil)
}

// Health returns the state of the host, healthy or not.
func (c *Client) Health(ctx context.Context) (httpapi.Health, error) {
	return ask[httpapi.Health](ctx, c, request{method: http.MethodGet, path: "/healthz", also: http.StatusServiceUnavailable})
}

// Readiness reports whether the tools of all plugins are known and calls can be
// recorded.
func (c *Client) Readiness(ctx context.Context) (httpapi.Health, error) {
	return ask[httpapi.Health](ctx, c, request{method: http.MethodGet, path: "/readyz", also: http.StatusServiceUnavailable})
}

// Metrics returns what the host counted about each tool since it started.
func (c *Client) Metrics(ctx context.Context) ([]metrics.Tool, error) {
	return get[[]metrics.Tool](ctx, c, "/v1/metrics", nil)
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
	return get[[]journal.Record](ctx, c, "/v1/journal", query)
}

// NetworkQuery selects connections; empty fields select all.
type NetworkQuery struct {
	Plugin, User, Call string
	Since              time.Time
	// Limit bounds the connections that have ended; 0 means 100.
	Limit int
}

// Network returns the connections of plugins to other machines.
func (c *Client) Network(ctx context.Context, q NetworkQuery) (httpapi.NetworkList, error) {
	query := url.Values{}
	for name, value := range map[string]string{"plugin": q.Plugin, "user": q.User, "call": q.Call, "since": timeText(q.Since)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[httpapi.NetworkList](ctx, c, "/v1/network", query)
}

// Usage returns the use of each tool by each user.
func (c *Client) Usage(ctx context.Context, q journal.UsageQuery) ([]journal.Usage, error) {
	query := url.Values{}
	for name, value := range map[string]string{"user": q.User, "since": timeText(q.Since), "until": timeText(q.Until)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return get[[]journal.Usage](ctx, c, "/v1/usage", query)
}

// VerifyJournal makes the host read its whole journal and report changes.
func (c *Client) VerifyJournal(ctx context.Context) (journal.Report, error) {
	return get[journal.Report](ctx, c, "/v1/journal/verify", nil)
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

// Secrets lists the secrets that a user sets, without their values; "" is the client's user.
func (c *Client) Secrets(ctx context.Context, user string) ([]httpapi.UserSecret, error) {
	return get[[]httpapi.UserSecret](ctx, c, "/v1/secrets", ofUser(user))
}

// SetSecret sets the value of a secret of a user; "" is the client's user.
func (c *Client) SetSecret(ctx context.Context, user, name, value string) error {
	body := map[string]string{"value": value}
	if user != "" {
		body["user"] = user
	}
	_, err := ask[struct{}](ctx, c, request{method: http.MethodPut, path: "/v1/secrets/" + url.PathEscape(name), body: body})
	return err
}

// RemoveSecret removes the value of a secret of a user; "" is the client's user.
func (c *Client) RemoveSecret(ctx context.Context, user, name string) error {
	_, err := ask[struct{}](ctx, c, request{method: http.MethodDelete, path: "/v1/secrets/" + url.PathEscape(name), query: ofUser(user)})
	return err
}

func ofUser(user string) url.Values {
	if user == "" {
		return nil
	}
	return url.Values{"user": {user}}
}
