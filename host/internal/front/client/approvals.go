package client

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// ApprovalFilter says which approvals are wanted.
type ApprovalFilter struct {
	// States and Users choose; none means all.
	States []approval.State
	Users  []string
	// Limit bounds them; 0 is the host's default.
	Limit int
	// Wait is how long to wait for one if there is none. Then no States means
	// open ones.
	Wait time.Duration
}

// Approvals lists approvals without their arguments and previews, the newest
// first.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter) ([]approval.Record, error) {
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
	var records []approval.Record
	err := c.do(ctx, request{method: "GET", path: "/v1/approvals", query: query}, &records)
	return records, err
}

// Approval returns a whole approval and how to show it.
func (c *Client) Approval(ctx context.Context, id string) (httpapi.Approval, error) {
	var a httpapi.Approval
	err := c.do(ctx, request{method: "GET", path: "/v1/approvals/" + url.PathEscape(id)}, &a)
	return a, err
}

// Answer is what a person says to an approval.
type Answer struct {
	// Grant approves later calls too; nil approves just this one.
	Grant *Terms `json:"grant,omitempty"`
	// Message is for the caller.
	Message string `json:"message,omitempty"`
	// ArgumentsHash and PreviewDigest are those of the approval as the person
	// saw it; see [Answer.Seen]. Without them, or if they are of another one, the
	// answer is refused.
	ArgumentsHash string `json:"arguments_hash"`
	PreviewDigest string `json:"preview_digest,omitempty"`
}

// Seen returns the answer of a person who saw a record.
func (a Answer) Seen(r approval.Record) Answer {
	a.ArgumentsHash, a.PreviewDigest = r.ArgumentsHash, r.PreviewDigest
	return a
}

// Terms say which later calls an answer covers too, and for how long; see
// [approval.Terms].
type Terms struct {
	Plugin   bool     `json:"plugin,omitempty"`
	Path     string   `json:"path,omitempty"`
	Commands []string `json:"commands,omitempty"`
	Session  bool     `json:"session,omitempty"`
	// For is a duration such as "8h"; "" is no end.
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
	var record approval.Record
	err := c.do(ctx, request{method: "POST", path: "/v1/approvals/" + url.PathEscape(id) + "/" + verb, body: answer}, &record)
	return record, err
}

// Grants lists the standing answers, the newest first; those that have ended too if it
// is asked for.
func (c *Client) Grants(ctx context.Context, ended bool) ([]approval.Grant, error) {
	query := url.Values{}
	if ended {
		query.Set("all", "true")
	}
	var grants []approval.Grant
	err := c.do(ctx, request{method: "GET", path: "/v1/grants", query: query}, &grants)
	return grants, err
}

// Revoke ends a standing answer.
func (c *Client) Revoke(ctx context.Context, id string) (approval.Grant, error) {
	var grant approval.Grant
	err := c.do(ctx, request{method: "DELETE", path: "/v1/grants/" + url.PathEscape(id)}, &grant)
	return grant, err
}

// ConfirmGrant makes a paused grant hold again, for what the person saw with it.
func (c *Client) ConfirmGrant(ctx context.Context, seen approval.Grant) (approval.Grant, error) {
	body := map[string]string{}
	if seen.Paused != nil {
		body["basis"] = seen.Paused.Basis
	}
	var grant approval.Grant
	err := c.do(ctx, request{method: "POST", path: "/v1/grants/" + url.PathEscape(seen.ID) + "/confirm", body: body}, &grant)
	return grant, err
}
