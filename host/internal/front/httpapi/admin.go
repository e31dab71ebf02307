package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Plugin is one plugin in a list.
type Plugin struct {
	supervisor.State

	Tools        []PluginTool  `json:"tools"`
	RefusedTools []RefusedTool `json:"refused_tools"`
	// Changed is the last change; nil if the plugin has not changed since it was first
	// seen.
	Changed *PluginChange `json:"changed,omitempty"`
	// Stops are the stops of admins that cover calls to the plugin.
	Stops []killswitch.Stop `json:"stops,omitempty"`
}

// PluginChange describes a change of a plugin and when the host saw it.
type PluginChange struct {
	Since time.Time `json:"since"`
	// Changes describe what changed: the program, or the tools, their tiers, schemas
	// and descriptions.
	Changes []string `json:"changes"`
}

// PluginTool is a tool that a plugin offers.
type PluginTool struct {
	Name string `json:"name"`
	// Tier is the tier of a call to which no tier rule of the tool applies.
	Tier tool.Tier `json:"tier"`
	// HighestTier is the highest tier that arguments can lead to, if it is not Tier.
	HighestTier tool.Tier `json:"highest_tier,omitzero"`
	// Roles are the names of the arguments with a role, by role.
	Roles map[tool.Role][]string `json:"roles,omitempty"`
}

// RefusedTool is a tool that the host does not offer.
type RefusedTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	// Unknown is set if the configuration names a tool that the plugin does not have.
	Unknown bool `json:"unknown"`
	// Unavailable reports that the tool cannot work in this configuration.
	Unavailable bool `json:"unavailable,omitempty"`
	// Pending reports that an administrator has not accepted its definition, and Gone that one was
	// accepted and the plugin no longer has the tool.
	Pending bool `json:"pending,omitempty"`
	Gone    bool `json:"gone,omitempty"`
}

// Pending returns how many tools wait to be accepted.
func (p Plugin) Pending() (n int) {
	for _, t := range p.RefusedTools {
		if t.Pending {
			n++
		}
	}
	return n
}

// PendingText says that tools of a plugin wait to be accepted.
func PendingText(plugin string, pending int) string {
	if pending == 1 {
		return fmt.Sprintf("1 tool of plugin %q is pending", plugin)
	}
	return fmt.Sprintf("%d tools of plugin %q are pending", pending, plugin)
}

// NewPlugins returns plugins with their tools and the tools that the catalog refuses.
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
				for _, argument := range e.Schema.Arguments() {
					for _, role := range argument.Roles {
						if t.Roles == nil {
							t.Roles = map[tool.Role][]string{}
						}
						t.Roles[role] = append(t.Roles[role], argument.Name)
					}
				}
				p.Tools = append(p.Tools, t)
			}
		}
		for _, r := range refused {
			if r.Plugin == state.Name {
				p.RefusedTools = append(p.RefusedTools, RefusedTool{r.Tool, r.Reason, r.Unknown, r.Unavailable, r.Pending, r.Gone})
			}
		}
		plugins = append(plugins, p)
	}
	return plugins
}

func (s *Server) plugins(ctx context.Context) []Plugin {
	changes := s.opts.PluginChanges(ctx)
	plugins := NewPlugins(s.opts.Supervisor.Plugins(), s.opts.Catalog.Entries(), s.opts.Catalog.Refused())
	stops := s.opts.Pipeline.Stops()
	for i := range plugins {
		plugins[i].Stops = stopsOf(plugins[i].Name, stops)
		if change, ok := changes[plugins[i].Name]; ok {
			plugins[i].Changed = &change
		}
	}
	return plugins
}

// plugin returns the plugin that the path names.
func (s *Server) plugin(r *request) (Plugin, error) {
	name := r.PathValue("name")
	plugins := s.plugins(r.Context())
	i := slices.IndexFunc(plugins, func(p Plugin) bool { return p.Name == name })
	if i < 0 {
		return Plugin{}, notFound.problem("there is no plugin %q", excerpt.Printable(name, maxShown)).hint("%s lists them", s.opts.Command("plugins list"))
	}
	return plugins[i], nil
}

// listPlugins answers GET /v1/plugins.
func (s *Server) listPlugins(r *request) (any, error) { return s.plugins(r.Context()), nil }

// getPlugin answers GET /v1/plugins/{name}.
func (s *Server) getPlugin(r *request) (any, error) { return s.plugin(r) }

// restartPlugin answers POST /v1/plugins/{name}/restart with the restarted plugin.
func (s *Server) restartPlugin(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	p, err := s.plugin(r)
	if err != nil {
		return nil, err
	}
	if err := s.opts.Supervisor.Restart(r.Context(), p.Name); err != nil {
		return nil, refused.problem("%v", err)
	}
	return s.plugin(r)
}

// maxGrace bounds how long a token may stay valid after it was revoked.
const maxGrace = 30 * 24 * time.Hour

// Token is one token in a list, without its digest.
type Token struct {
	Name        string   `json:"name"`
	User        string   `json:"user"`
	Roles       []string `json:"roles"`
	Approves    []string `json:"approves,omitempty"`
	Elicitation bool     `json:"elicitation,omitempty"`
	// Account is the account that may use the token over HTTP: "any", a name or a
	// number; "" is the host's own account.
	Account string `json:"account,omitempty"`
	// Expires is when the token expires, and Revoked when its revocation takes or took
	// effect; zero is never.
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	// LastUsed is when the host last accepted a request with the token since it
	// started; zero is never.
	LastUsed time.Time `json:"last_used,omitzero"`
}

// listTokens answers GET /v1/tokens: the host's own token, then those of the
// configuration in its order.
func (s *Server) listTokens(*request) (any, error) {
	tokens := []Token{}
	for _, t := range s.opts.Tokens.List() {
		tokens = append(tokens, Token{
			Name: t.Caller.Token, User: t.Caller.User, Roles: t.Caller.Roles.Names(), Approves: t.Caller.Approves,
			Elicitation: t.Caller.Elicitation, Account: t.Account.Name, Expires: t.Expires, Revoked: t.Revoked, LastUsed: t.LastUsed,
		})
	}
	return tokens, nil
}

// RevokedToken is the answer to POST /v1/tokens/{name}/revoke.
type RevokedToken struct {
	Name string `json:"name"`
	// Revoked is the latest time at which the token stops being valid.
	Revoked time.Time `json:"revoked"`
}

// revokeToken answers POST /v1/tokens/{name}/revoke.
func (s *Server) revokeToken(r *request) (any, error) {
	var text string
	if err := r.readBody(fields{"grace": &text}); err != nil {
		return nil, err
	}
	grace, err := time.ParseDuration(cmp.Or(text, "0s"))
	if err != nil || grace < 0 || grace > maxGrace {
		return nil, badRequest.problem("grace is %q, expected a duration from 0s to %s, such as 1h", excerpt.Printable(text, maxShown), maxGrace)
	}
	if s.opts.RevokeToken == nil {
		return nil, refused.problem("this host cannot revoke tokens").hint("remove the token's block from the configuration, and reload")
	}
	name, at := r.PathValue("name"), time.Now().Add(grace)
	if err := s.opts.RevokeToken(r.Context(), name, grace, r.caller); err != nil {
		return nil, err
	}
	return RevokedToken{Name: name, Revoked: at.UTC().Truncate(time.Second)}, nil
}

// reload answers POST /v1/reload. The host uses the whole new configuration, or keeps
// the old one.
func (s *Server) reload(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	if s.opts.Reload == nil {
		return nil, refused.problem("this host cannot reload its configuration").hint("restart it")
	}
	if err := s.opts.Reload(r.Context(), r.query.text("accept"), r.caller, r.via); err != nil {
		return nil, refused.problem("%v", err).hint("the host keeps the configuration that it had")
	}
	return reloaded{"reloaded"}, nil
}

// Handover describes how a host makes room for a permanent one.
type Handover struct {
	// Ephemeral reports that the host runs for one command only and ends with it. Any
	// other host has begun to stop.
	Ephemeral bool `json:"ephemeral"`
	// GraceMS is how many milliseconds the running calls may still take.
	GraceMS int64 `json:"grace_ms"`
}

// handOver answers POST /v1/handover: a host that runs for a client or a command makes room for
// a permanent one. Only the control socket has the route.
func (s *Server) handOver(r *request) (any, error) {
	if !r.local {
		return nil, notFound.problem("a host is handed over on its control socket only")
	}
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	if s.opts.HandOver == nil {
		return nil, refused.problem("this host runs until it is told to stop").hint("stop it, and start the other")
	}
	return s.opts.HandOver(), nil
}

// list returns a list that is [] in JSON if it is empty.
func list[T any](of []T) []T {
	if of == nil {
		return []T{}
	}
	return of
}
