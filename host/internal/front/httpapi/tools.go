package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Tool is a tool as it is listed.
type Tool struct {
	Name         string          `json:"name"`
	Plugin       string          `json:"plugin"`
	Tier         tool.Tier       `json:"tier"`
	TierWhen     []tool.TierRule `json:"tier_when,omitempty"`
	Title        string          `json:"title,omitempty"`
	Category     string          `json:"category,omitempty"`
	Description  string          `json:"description"`
	Aliases      []string        `json:"aliases,omitempty"`
	Idempotent   bool            `json:"idempotent"`
	OpenWorld    bool            `json:"open_world"`
	Destructive  bool            `json:"destructive"`
	Timeout      string          `json:"timeout"`
	MaxOutput    string          `json:"max_output"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// NewTool returns a tool of the catalog as it is listed.
func NewTool(e *catalog.Entry) Tool {
	return Tool{
		Name: e.Spec.Name, Plugin: e.Plugin, Tier: e.Tier, TierWhen: e.Spec.TierWhen,
		Title: e.Spec.Title, Category: e.Spec.Category, Description: e.Spec.Description, Aliases: e.Aliases,
		Idempotent: e.Idempotent(), OpenWorld: e.Spec.OpenWorld, Destructive: e.Destructive(),
		Timeout: e.Timeout.String(), MaxOutput: e.MaxOutput.String(),
		InputSchema: e.Schema.Public(), OutputSchema: e.Output.Public(),
	}
}

// NewTools returns tools of the catalog as they are listed.
func NewTools(entries []*catalog.Entry) []Tool {
	tools := make([]Tool, 0, len(entries))
	for _, e := range entries {
		tools = append(tools, NewTool(e))
	}
	return tools
}

// listTools answers GET /v1/tools.
func (s *Server) listTools(w http.ResponseWriter, r *request) error {
	q := readQuery(r.Request, "format")
	if err := q.err(); err != nil {
		return err
	}
	format := q.text("format")
	i := slices.IndexFunc(formats(), func(f toolFormat) bool { return f.name == format })
	if format != "" && i < 0 {
		var names []string
		for _, f := range formats() {
			names = append(names, f.name)
		}
		return badRequest().problem("format is %q, expected one of %s", excerpt.Printable(format, maxShown), strings.Join(names, ", ")).
			hint("without it, tools come with all that the host knows of them")
	}
	s.awaitTools(r.Context())
	entries := s.opts.Catalog.Entries()
	if format == "" {
		return s.write(w, http.StatusOK, NewTools(entries))
	}
	return s.write(w, http.StatusOK, formats()[i].list(entries))
}

// getTool answers GET /v1/tools/{name}. An alias will do.
func (s *Server) getTool(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	entry, err := s.lookUp(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return s.write(w, http.StatusOK, NewTool(entry))
}

// lookUp finds a tool, and waits for plugins that are still starting if there
// is none yet.
func (s *Server) lookUp(ctx context.Context, name string) (*catalog.Entry, error) {
	entry, err := s.opts.Catalog.Lookup(name)
	if err != nil {
		s.awaitTools(ctx)
		entry, err = s.opts.Catalog.Lookup(name)
	}
	if err != nil {
		return nil, err
	}
	return entry, nil
}

// awaitTools waits until the tools of all plugins are known, for some seconds
// at most.
func (s *Server) awaitTools(ctx context.Context) {
	if s.opts.Ready == nil {
		return
	}
	timer := time.NewTimer(s.timing.ready)
	defer timer.Stop()
	select {
	case <-s.opts.Ready:
	case <-timer.C:
	case <-ctx.Done():
	}
}
