package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
)

// shape is what a route takes and answers, for the OpenAPI document.
type shape struct {
	// does is one line about the route.
	does string
	// takes is a value of the type of the body; nil means that the body has no members.
	takes any
	// gives is a value of the type of the answer. Lists are in front of what an answer may be
	// instead. nil means an answer that is no JSON.
	gives []any
	// also are the statuses with the same answer, besides 200.
	also []int
	// media is the type of an answer that is not one JSON value.
	media string
	// otherwise says that another protocol is spoken: MCP.
	otherwise bool
}

// Bodies of requests. Each handler reads the same members by name, to tell which one is wrong; a test
// compares the two.
type (
	callBody struct {
		Tool      string         `json:"tool"`
		Arguments map[string]any `json:"arguments,omitempty"`
		Context   string         `json:"context,omitempty"`
	}
	explainBody struct {
		Tool      string         `json:"tool"`
		Arguments map[string]any `json:"arguments,omitempty"`
		User      string         `json:"user,omitempty"`
		Client    string         `json:"client,omitempty"`
	}
	termsBody struct {
		Plugin   bool     `json:"plugin,omitempty"`
		Path     string   `json:"path,omitempty"`
		Commands []string `json:"commands,omitempty"`
		Session  bool     `json:"session,omitempty"`
		For      string   `json:"for,omitempty"`
		Uses     int64    `json:"uses,omitempty"`
	}
	rejectBody struct {
		Message       string `json:"message,omitempty"`
		ArgumentsHash string `json:"arguments_hash,omitempty"`
		PreviewDigest string `json:"preview_digest,omitempty"`
	}
	approveBody struct {
		rejectBody

		Grant *termsBody `json:"grant,omitempty"`
	}
	confirmBody struct {
		Basis string `json:"basis"`
	}
	secretBody struct {
		Value string `json:"value"`
		User  string `json:"user,omitempty"`
	}
	acceptBody struct {
		Digest string `json:"digest"`
		Tools  string `json:"tools,omitempty"`
	}
	stopBody struct {
		killswitch.Scope

		Reason string `json:"reason,omitempty"`
	}
	revokeBody struct {
		Grace string `json:"grace,omitempty"`
	}
	reloaded struct {
		Status string `json:"status"`
	}
)

// shapes returns what each route of [routes] takes and answers, by method and path.
func shapes() map[string]shape {
	call := []any{operation.Outcome{}}
	mcp := shape{does: "Speak MCP", otherwise: true}
	health := []int{http.StatusServiceUnavailable}
	return map[string]shape{
		"POST /v1/calls":                             {does: "Call a tool", takes: callBody{}, gives: call, also: []int{http.StatusAccepted}},
		"GET /v1/calls":                              {does: "List the running calls", gives: []any{[]operation.Info{}}},
		"GET /v1/calls/{id}":                         {does: "Get the outcome of a call, or its record", gives: []any{operation.Outcome{}, RecordedCall{}}, also: []int{http.StatusAccepted}},
		"POST /v1/calls/{id}/cancel":                 {does: "Cancel a call", gives: []any{operation.Outcome{}, RecordedCall{}}, also: []int{http.StatusAccepted}},
		"GET /v1/caller":                             {does: "Tell who the credential belongs to", gives: []any{Identity{}}},
		"GET /v1/tools":                              {does: "List the tools", gives: []any{[]Tool{}, json.RawMessage{}}},
		"GET /v1/tools/{name}":                       {does: "Describe a tool", gives: []any{ToolDetails{}}},
		"POST /v1/explain":                           {does: "Explain what would happen to a call", takes: explainBody{}, gives: []any{pipeline.Explanation{}}},
		"GET /v1/events":                             {does: "Follow the events", media: "text/event-stream"},
		"POST /mcp":                                  mcp,
		"GET /mcp":                                   mcp,
		"DELETE /mcp":                                mcp,
		"POST /mcp/{toolset}":                        mcp,
		"GET /mcp/{toolset}":                         mcp,
		"DELETE /mcp/{toolset}":                      mcp,
		"POST /v1/mcp/relay":                         mcp,
		"GET /v1/approvals":                          {does: "List approvals", gives: []any{[]Approval{}}},
		"GET /v1/approvals/{id}":                     {does: "Get an approval", gives: []any{Approval{}}},
		"POST /v1/approvals/{id}/approve":            {does: "Approve a call", takes: approveBody{}, gives: []any{approval.Record{}}},
		"POST /v1/approvals/{id}/reject":             {does: "Reject a call", takes: rejectBody{}, gives: []any{approval.Record{}}},
		"GET /v1/grants":                             {does: "List grants", gives: []any{[]approval.Grant{}}},
		"DELETE /v1/grants/{id}":                     {does: "Revoke a grant", gives: []any{approval.Grant{}}},
		"POST /v1/grants/{id}/confirm":               {does: "Resume a paused grant", takes: confirmBody{}, gives: []any{approval.Grant{}}},
		"POST /v1/logins":                            {does: "Get a link that logs in a browser, once", gives: []any{LoginLink{}}},
		"DELETE /v1/logins":                          {does: "Log out all browsers of the credential", gives: []any{EndedLogins{}}},
		"POST /v1/notifiers/{name}/test":             {does: "Deliver a test message", gives: []any{Notified{}}},
		"GET /v1/secrets":                            {does: "List the secrets of a user, without values", gives: []any{[]UserSecret{}}},
		"PUT /v1/secrets/{name}":                     {does: "Set a secret", takes: secretBody{}, gives: []any{struct{}{}}},
		"DELETE /v1/secrets/{name}":                  {does: "Remove a secret", gives: []any{struct{}{}}},
		"GET /v1/plugins":                            {does: "List the plugins", gives: []any{[]Plugin{}}},
		"GET /v1/plugins/{name}":                     {does: "Get a plugin", gives: []any{Plugin{}}},
		"POST /v1/plugins/{name}/restart":            {does: "Restart a plugin", gives: []any{Plugin{}}},
		"GET /v1/plugins/{name}/definitions":         {does: "Compare tools with their accepted definitions", gives: []any{Definitions{}}},
		"POST /v1/plugins/{name}/definitions/accept": {does: "Accept definitions of tools", takes: acceptBody{}, gives: []any{Definitions{}}},
		"GET /v1/stops":                              {does: "List the stops in force", gives: []any{[]killswitch.Stop{}}},
		"POST /v1/stops":                             {does: "Stop calls", takes: stopBody{}, gives: []any{Stopped{}}},
		"DELETE /v1/stops/{id}":                      {does: "End a stop", gives: []any{killswitch.Stop{}}},
		"GET /v1/tokens":                             {does: "List the tokens", gives: []any{[]Token{}}},
		"POST /v1/tokens/{name}/revoke":              {does: "Revoke a token", takes: revokeBody{}, gives: []any{RevokedToken{}}},
		"GET /v1/journal":                            {does: "Query the journal", gives: []any{[]journal.Record{}}},
		"GET /v1/journal/tail":                       {does: "Follow the journal", media: "application/x-ndjson"},
		"GET /v1/journal/verify":                     {does: "Verify that the journal was not changed", gives: []any{journal.Report{}}},
		"GET /v1/network":                            {does: "List the connections of plugins", gives: []any{NetworkList{}}},
		"GET /v1/usage":                              {does: "Sum up the calls by user and tool", gives: []any{[]journal.Usage{}}},
		"GET /v1/metrics":                            {does: "Count the calls by tool, since the host started", gives: []any{[]metrics.Tool{}}},
		"GET /metrics":                               {does: "Get the figures for Prometheus", media: metrics.ContentType},
		"GET /v1/openapi.json":                       {does: "Get this document", gives: []any{map[string]any{}}},
		"POST /v1/reload":                            {does: "Reload the configuration", gives: []any{reloaded{}}},
		"POST /v1/handover":                          {does: "Hand over to a permanent host", gives: []any{Handover{}}},
		"GET " + metadataPath:                        {does: "Describe this host to OAuth clients", gives: []any{resourceMetadata{}}},
		"GET " + metadataPath + "/mcp":               {does: "Describe /mcp to OAuth clients", gives: []any{resourceMetadata{}}},
		"GET " + metadataPath + "/mcp/{toolset}":     {does: "Describe a toolset to OAuth clients", gives: []any{resourceMetadata{}}},
		"GET /healthz":                               {does: "Tell whether the host is healthy", gives: []any{Health{}}, also: health},
		"GET /readyz":                                {does: "Tell whether the host takes calls", gives: []any{Health{}}, also: health},
	}
}
