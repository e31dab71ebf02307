package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Stopped is the answer to POST /v1/stops.
type Stopped struct {
	pipeline.Stopped

	// Notes are what the admin may have meant otherwise.
	Notes []string `json:"notes,omitempty"`
}

// listStops answers GET /v1/stops with the stops in force, the oldest first.
func (s *Server) listStops(*request) (any, error) { return list(s.opts.Pipeline.Stops()), nil }

// stopCalls answers POST /v1/stops: it stops the calls of a user, of a plugin, of both, or all.
func (s *Server) stopCalls(r *request) (any, error) {
	var user, plugin *string
	var reason string
	if err := r.readBody(fields{"user": &user, "plugin": &plugin, "reason": &reason}); err != nil {
		return nil, err
	}
	req := pipeline.StopRequest{Reason: reason, By: r.caller, Via: r.via}
	for _, member := range []struct {
		name  string
		given *string
		into  *string
	}{{"user", user, &req.User}, {"plugin", plugin, &req.Plugin}} {
		switch {
		case member.given == nil:
		case *member.given == "": // a mistake must not stop more than was meant
			return nil, badRequest.problem("%s is empty, expected a name", member.name).hint("leave it out to stop every %s", member.name)
		default:
			*member.into = *member.given
		}
	}
	if err := s.knowsPlugin(req.Plugin); err != nil {
		return nil, err
	}
	stopped, err := s.opts.Pipeline.Stop(r.Context(), req)
	if err != nil {
		return nil, err
	}
	answer := Stopped{Stopped: stopped}
	if req.User != "" && !s.knowsUser(r.Context(), req.User) {
		answer.Notes = append(answer.Notes, unknownUser(req.User))
	}
	return answer, nil
}

// knowsPlugin refuses the name of a plugin that does not exist. "" is every plugin.
func (s *Server) knowsPlugin(name string) error {
	var names []string
	for _, p := range s.opts.Supervisor.Plugins() {
		names = append(names, p.Name)
	}
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	unknown := notFound.problem("there is no plugin %q, so nothing was stopped", excerpt.Printable(name, maxShown))
	if near := schema.Nearest(name, names); len(near) > 0 {
		return unknown.hint("did you mean %s?", strings.Join(near, " or "))
	}
	return unknown.hint("%s lists them", s.opts.Command("plugins list"))
}

// unknownUser is the note about a user who may be misspelt.
func unknownUser(name string) string {
	return fmt.Sprintf("no token is for the user %s, and the journal has no call of that user: is the name right?", tool.VisibleName(name))
}

// maxSearch bounds the search for a user in the journal.
const maxSearch = 2 * time.Second

// knowsUser reports whether a user has a token or has made a call. If the journal does not say in
// time, it reports true.
func (s *Server) knowsUser(ctx context.Context, name string) bool {
	if name == s.opts.User {
		return true
	}
	for _, tokens := range []*auth.Tokens{s.opts.Keys, s.opts.Tokens} {
		if slices.ContainsFunc(tokens.List(), func(t auth.Listed) bool { return t.Caller.User == name }) {
			return true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, maxSearch)
	defer cancel()
	rows, err := s.opts.Journal.Query(ctx, journal.Query{User: name, Limit: 1})
	return err != nil || len(rows) > 0
}

// resumeCalls answers DELETE /v1/stops/{id} with the stop that has ended.
func (s *Server) resumeCalls(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	stop, err := s.opts.Pipeline.Resume(r.Context(), r.PathValue("id"), r.caller, r.via)
	if failed, ok := errors.AsType[*tool.Error](err); ok && failed.Code == tool.NotFound {
		return nil, failed.WithHint("%s shows those in force", s.opts.Command("stop-all --list"))
	}
	return stop, err
}

// stopProblems tells that calls are stopped. Readiness needs no credential, so it does not tell which.
func (s *Server) stopProblems(r *request) []string {
	if len(s.opts.Pipeline.Stops()) == 0 {
		return nil
	}
	return []string{"an administrator has stopped calls: " + s.healthCommand(r, "stop-all --list") + " shows which"}
}

// stopsOf returns the stops that cover calls to a plugin.
func stopsOf(plugin string, stops []killswitch.Stop) (covering []killswitch.Stop) {
	for _, stop := range stops {
		if stop.Plugin == "" || stop.Plugin == plugin {
			covering = append(covering, stop)
		}
	}
	return covering
}
