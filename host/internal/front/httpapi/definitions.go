package httpapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// Definitions compares the definitions of a plugin's tools with those that were accepted.
type Definitions struct {
	Plugin string `json:"plugin"`
	// Locked reports whether the tools need to be accepted before they are offered.
	Locked bool `json:"locked"`
	// Digest is the digest of Tools, to accept them: see [Server.acceptDefinitions].
	Digest string           `json:"digest"`
	Tools  []ToolDefinition `json:"tools"`
}

// ToolDefinition compares the definition of a tool with the accepted one.
type ToolDefinition struct {
	Tool string `json:"tool"`
	// State is new, changed, gone or accepted.
	State catalog.DefinitionState `json:"state"`
	// Accepted and Published are the definitions, and their digests; omitted if there is none.
	Accepted        json.RawMessage `json:"accepted,omitempty"`
	AcceptedDigest  string          `json:"accepted_digest,omitempty"`
	Published       json.RawMessage `json:"published,omitempty"`
	PublishedDigest string          `json:"published_digest,omitempty"`
}

// NewDefinitions returns a review as the interface shows it.
func NewDefinitions(review catalog.Review) Definitions {
	d := Definitions{Plugin: review.Plugin, Locked: review.Locked, Digest: review.Digest(), Tools: []ToolDefinition{}}
	for _, t := range review.Tools {
		d.Tools = append(d.Tools, ToolDefinition{
			Tool: t.Tool, State: t.State,
			Accepted: definitionJSON(t.Accepted), AcceptedDigest: t.Accepted.Digest(),
			Published: definitionJSON(t.Published), PublishedDigest: t.Published.Digest(),
		})
	}
	return d
}

func definitionJSON(d lock.Definition) json.RawMessage {
	if d.Digest() == "" {
		return nil
	}
	return d.JSON()
}

// definitions answers GET /v1/plugins/{name}/definitions with the tools that the query names, or
// with those that are not accepted.
func (s *Server) definitions(r *request) (any, error) {
	p, err := s.plugin(r)
	if err != nil {
		return nil, err
	}
	review, known := s.opts.Catalog.Review(p.Name)
	if !known {
		return nil, notFound.problem("the tools of the plugin %q are not known: it has never started", p.Name).
			hint("%s says why", s.opts.Command("plugins inspect "+p.Name))
	}
	part, err := review.Of(r.query.list("tools")...)
	if err != nil {
		return nil, notFound.problem("%v", err).hint("without the parameter tools, all tools that are not accepted are shown")
	}
	return NewDefinitions(part), nil
}

// maxToolNames bounds the names of tools in a request, in bytes.
const maxToolNames = 64 << 10

// acceptDefinitions answers POST /v1/plugins/{name}/definitions/accept with what was accepted.
func (s *Server) acceptDefinitions(r *request) (any, error) {
	var digest, names string
	if err := r.readBody(fields{"digest": &digest, "tools": &names}); err != nil {
		return nil, err
	}
	p, err := s.plugin(r)
	switch {
	case err != nil:
		return nil, err
	case digest == "":
		return nil, badRequest.problem("digest is missing: it says which definitions a person has seen").
			hint("take it from GET /v1/plugins/%s/definitions", excerpt.Printable(p.Name, maxShown))
	case len(names) > maxToolNames:
		return nil, badRequest.problem("tools has %d bytes, more than the %d that are allowed", len(names), maxToolNames)
	case s.opts.AcceptDefinitions == nil:
		return nil, refused.problem("this host cannot accept definitions")
	}
	var tools []string
	if names != "" {
		tools = slices.Compact(slices.Sorted(slices.Values(strings.Split(names, ","))))
	}
	review, err := s.opts.AcceptDefinitions(r.Context(), p.Name, tools, digest, r.caller, r.via)
	if err != nil {
		return nil, err
	}
	return NewDefinitions(review), nil
}

// pendingProblems tells which plugins have definitions that wait to be accepted.
func (s *Server) pendingProblems(r *request) (problems []string) {
	for _, p := range NewPlugins(s.opts.Supervisor.Plugins(), nil, s.opts.Catalog.Refused()) {
		if pending := p.Pending(); pending > 0 {
			problems = append(problems, PendingText(p.Name, pending)+": "+s.healthCommand(r, "plugins diff "+p.Name))
		}
	}
	return problems
}
