package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// ApprovalFilter selects approvals.
type ApprovalFilter struct {
	// States and Users select by state and user; none means all.
	States []approval.State
	Users  []string
	// Limit bounds the number; 0 is the host's default.
	Limit int
	// Wait is how long to wait for an approval if there is none. Then no States means
	// open approvals.
	Wait time.Duration
}

// Approvals lists approvals without arguments and previews, newest first.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter) ([]httpapi.Approval, error) {
	query := url.Values{}
	if len(f.States) > 0 {
		states := make([]string, len(f.States))
		for i, state := range f.States {
			states[i] = string(state)
		}
		query.Set("state", strings.Join(states, ","))
	}
	if len(f.Users) > 0 {
		query.Set("user", strings.Join(f.Users, ","))
	}
	if f.Limit > 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.Wait > 0 {
		query.Set("wait", f.Wait.String())
	}
	return get[[]httpapi.Approval](ctx, c, "/v1/approvals", query)
}

// Approval returns a whole approval and its display.
func (c *Client) Approval(ctx context.Context, id string) (httpapi.Approval, error) {
	return get[httpapi.Approval](ctx, c, "/v1/approvals/"+url.PathEscape(id), nil)
}

// Answer is a person's answer to an approval.
type Answer struct {
	// Grant approves later calls, too; nil approves this call only.
	Grant *Terms `json:"grant,omitempty"`
	// Message is for the caller.
	Message string `json:"message,omitempty"`
	// ArgumentsHash and PreviewDigest identify what the person saw; see [Answer.Seen].
	// The host refuses an answer without them, or with others.
	ArgumentsHash string `json:"arguments_hash"`
	PreviewDigest string `json:"preview_digest,omitempty"`
}

// Seen returns the answer of a person who has seen the record.
func (a Answer) Seen(r approval.Record) Answer {
	a.ArgumentsHash, a.PreviewDigest = r.ArgumentsHash, r.PreviewDigest
	return a
}

// Terms describe the later calls that an answer covers, and for how long; see
// [approval.Terms].
type Terms struct {
	Plugin   bool     `json:"plugin,omitempty"`
	Path     string   `json:"path,omitempty"`
	Commands []string `json:"commands,omitempty"`
	Session  bool     `json:"session,omitempty"`
	// For is a duration such as "8h"; "" means no end.
	For  string `json:"for,omitempty"`
	Uses int64  `json:"uses,omitempty"`
}

// Approve lets a call run.
func (c *Client) Approve(ctx context.Context, id string, answer Answer) (approval.Record, error) {
	return c.decide(ctx, id, "approve", answer)
}

// Reject refuses a call. Grant has no meaning and must be nil.
func (c *Client) Reject(ctx context.Context, id string, answer Answer) (approval.Record, error) {
	return c.decide(ctx, id, "reject", answer)
}

func (c *Client) decide(ctx context.Context, id, verb string, answer Answer) (approval.Record, error) {
	return post[approval.Record](ctx, c, "/v1/approvals/"+url.PathEscape(id)+"/"+verb, answer)
}

// Grants lists grants, newest first. ended includes grants that have ended.
func (c *Client) Grants(ctx context.Context, ended bool) ([]approval.Grant, error) {
	query := url.Values{}
	if ended {
		query.Set("all", "true")
	}
	return get[[]approval.Grant](ctx, c, "/v1/grants", query)
}

// Revoke ends a grant.
func (c *Client) Revoke(ctx context.Context, id string) (approval.Grant, error) {
	return ask[approval.Grant](ctx, c, request{method: http.MethodDelete, path: "/v1/grants/" + url.PathEscape(id)})
}

// ConfirmGrant resumes a paused grant. seen is the grant as the person saw it.
func (c *Client) ConfirmGrant(ctx context.Context, seen approval.Grant) (approval.Grant, error) {
	body := map[string]string{}
	if seen.Paused != nil {
		body["basis"] = seen.Paused.Basis
	}
	return post[approval.Grant](ctx, c, "/v1/grants/"+url.PathEscape(seen.ID)+"/confirm", body)
}
