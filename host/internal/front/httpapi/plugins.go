package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Plugin is a plugin as it is listed.
type Plugin struct {
	supervisor.State

	Tools        []PluginTool  `json:"tools"`
	RefusedTools []RefusedTool `json:"refused_tools"`
	// Changed is what changed last; nil if nothing has since the plugin was first seen.
	Changed *PluginChange `json:"changed,omitempty"`
}

// PluginChange says what of a plugin changed, and when the host saw it.
type PluginChange struct {
	Since time.Time `json:"since"`
	// Changes are in words: of the program, and of tools, their tiers, schemas and
	// descriptions.
	Changes []string `json:"changes"`
}

// PluginTool is a tool that a plugin offers.
type PluginTool struct {
	Name string `json:"name"`
	// Tier is that of a call to which no rule of the tool gives another.
	Tier tool.Tier `json:"tier"`
	// HighestTier is the highest that a call may have by its arguments, if that
	// is not Tier.
	HighestTier tool.Tier `json:"highest_tier,omitzero"`
}

// RefusedTool is a tool that is not offered.
type RefusedTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	// Unknown says that the configuration names it and the plugin has no such
	// tool.
	Unknown bool `json:"unknown"`
}

// NewPlugins returns plugins as they are listed, with their tools and what the
// catalog refuses of them.
func NewPlugins(states []supervisor.State, entries []*catalog.Entry, refused []catalog.Refusal) []Plugin {
	plugins := make([]Plugin, 0, len(states))
	for _, state := range states {
		p := Plugin{State: state, Tools: []PluginTool{}, RefusedTools: []RefusedTool{}}
		for _, e := range entries {
			if e.Plugin == state.Name {
				t := PluginTool{Name: e.Spec.Name, Tier: e.Tier}
				if highest := e.HighestTier(); highest != e.Tier {
					t.HighestTier = highest
				}
				p.Tools = append(p.Tools, t)
			}
		}
		for _, r := range refused {
			if r.Plugin == state.Name {
				p.RefusedTools = append(p.RefusedTools, RefusedTool{r.Tool, r.Reason, r.Unknown})
			}
		}
		plugins = append(plugins, p)
	}
	return plugins
}

func (s *Server) plugins(ctx context.Context) []Plugin {
	changes := s.opts.PluginChanges(ctx)
	plugins := NewPlugins(s.opts.Supervisor.Plugins(), s.opts.Catalog.Entries(), s.opts.Catalog.Refused())
	for i := range plugins {
		if change, ok := changes[plugins[i].Name]; ok {
			plugins[i].Changed = &change
		}
	}
	return plugins
}

// listPlugins answers GET /v1/plugins.
func (s *Server) listPlugins(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	return s.write(w, http.StatusOK, s.plugins(r.Context()))
}

// getPlugin answers GET /v1/plugins/{name}.
func (s *Server) getPlugin(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	name := r.PathValue("name")
	plugins := s.plugins(r.Context())
	i := slices.IndexFunc(plugins, func(p Plugin) bool { return p.Name == name })
	if i < 0 {
		return noPlugin(name)
	}
	return s.write(w, http.StatusOK, plugins[i])
}

func noPlugin(name string) *Problem {
	return notFound().problem("there is no plugin %q", excerpt.Printable(name, maxShown)).hint("GET /v1/plugins lists them")
}

// restartPlugin answers POST /v1/plugins/{name}/restart with the plugin as it
// is then.
func (s *Server) restartPlugin(w http.ResponseWriter, r *request) error {
	if err := readNothing(w, r); err != nil {
		return err
	}
	name := r.PathValue("name")
	is := func(p Plugin) bool { return p.Name == name }
	if !slices.ContainsFunc(s.plugins(r.Context()), is) {
		return noPlugin(name)
	}
	if err := s.opts.Supervisor.Restart(r.Context(), name); err != nil {
		return refused().problem("%v", err)
	}
	plugins := s.plugins(r.Context())
	i := slices.IndexFunc(plugins, is)
	if i < 0 { // taken out of the configuration meanwhile
		return notFound().problem("there is no plugin %q any more", excerpt.Printable(name, maxShown))
	}
	return s.write(w, http.StatusOK, plugins[i])
}

// readNothing reads a request that has neither parameters nor members in its
// body.
func readNothing(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	return readBody(w, r.Request, fields{})
}
