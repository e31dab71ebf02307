package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// events answers GET /v1/events with a stream of server-sent events (HTML, section 9.2):
// those after the event in Last-Event-ID, or from now on. The stream ends when the
// credential is no longer valid.
func (s *Server) events(r *request) error {
	q := r.query
	wanted := q.list("types")
	for _, name := range wanted {
		if !slices.Contains(event.Kinds(), event.Kind(name)) {
			q.fail("unknown event type %q", excerpt.Printable(name, maxShown))
			q.mistake.Hint = fmt.Sprintf("types are %v", event.Kinds())
		}
	}
	if err := q.err(); err != nil {
		return err
	}
	events := s.opts.Events.Subscribe(r.Header.Get("Last-Event-ID"))
	out := s.startStream(r.w, "text/event-stream")
	// The id tells a client its position even if no event reaches it for long.
	alive := func() { out.write(": alive\nid: " + events.Position() + "\n\n") }
	out.write("retry: 2000\n")
	for alive(); out.err == nil && r.valid(); alive() {
		if err := s.sendEvents(r, out, events, wanted); !errors.Is(err, errQuiet) {
			break
		}
	}
	return nil
}

// errQuiet says that it is time for a sign of life.
var errQuiet = errors.New("nothing happened for a while")

// sendEvents streams the events that a caller wants and may see, until it is time for a
// sign of life.
func (s *Server) sendEvents(r *request, out *stream, events *event.Subscription, wanted []string) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), s.timing.keepAlive, errQuiet)
	defer cancel()
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return err
		}
		if !mayWatch(r.caller, e) || !s.inToolsets(r.caller, e) || len(wanted) > 0 && e.Kind != event.KindGap && !slices.Contains(wanted, string(e.Kind)) {
			continue
		}
		if e.User != r.caller.User {
			e = e.WithoutResult()
		}
		text, err := e.JSON()
		if err != nil {
			return err
		}
		out.write("id: " + e.ID + "\nevent: " + string(e.Kind) + "\ndata: " + string(text) + "\n\n")
		if out.err != nil {
			return out.err
		}
	}
}

// mayWatch reports whether a caller may see an event. An agent sees the events of its own user,
// an approver those of the users whose calls it may decide, and an admin all. Events without a
// user are for admins, except those about changed tools.
func mayWatch(caller auth.Caller, e event.Event) bool {
	switch {
	case caller.Roles.Has(auth.Admin), e.Kind == event.KindGap, e.Kind == event.KindCatalogChanged:
		return true
	case e.User == "":
		return false
	case caller.Roles.Has(auth.Approver):
		return caller.MayApprove(e.User)
	}
	return e.User == caller.User
}

// inToolsets reports whether an event is about no call, or about one of a tool that is in
// the toolsets of a caller. Reports of a call that has ended name no tool.
func (s *Server) inToolsets(caller auth.Caller, e event.Event) bool {
	if len(caller.Toolsets) == 0 {
		return true
	}
	switch of := e.Data.(type) {
	case event.ToolCall:
		return s.mayUse(caller, of.Tool)
	case event.ToolApproval:
		return s.mayUse(caller, of.Tool)
	case event.ToolResult:
		return s.mayUse(caller, of.Tool)
	case event.ToolProgress:
		return s.opts.Pipeline.Operations().Sees(of.ID, caller)
	case event.Connection:
		return of.Call != "" && s.opts.Pipeline.Operations().Sees(of.Call, caller)
	case event.FileChanged:
		return s.opts.Pipeline.Operations().Sees(of.ID, caller)
	}
	return true
}

// stream is an answer that is written piece by piece. After an error it writes nothing
// more: the client is gone, or did not read in time.
type stream struct {
	server *Server
	w      http.ResponseWriter
	err    error
}

// startStream begins a streamed answer.
func (s *Server) startStream(w http.ResponseWriter, mediaType string) *stream {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	out := &stream{server: s, w: w}
	out.write("")
	return out
}

// write sends a text immediately.
func (o *stream) write(text string) {
	if o.err != nil {
		return
	}
	o.server.writeWithin(o.w)
	if _, o.err = strings.NewReader(text).WriteTo(o.w); o.err != nil {
		return
	}
	o.err = http.NewResponseController(o.w).Flush()
}
