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

// events answers GET /v1/events: a stream of server-sent events (the WHATWG's
// HTML, section 9.2), those after the one that Last-Event-ID names, or from now
// on. It ends when the credential does not count any more.
func (s *Server) events(w http.ResponseWriter, r *request) error {
	q := readQuery(r.Request, "types")
	wanted := q.list("types")
	for _, name := range wanted {
		if !slices.Contains(event.Kinds(), event.Kind(name)) {
			q.fail("%q is no type of event", excerpt.Printable(name, maxShown))
			q.mistake.Hint = fmt.Sprintf("types are %v", event.Kinds())
		}
	}
	if err := q.err(); err != nil {
		return err
	}
	events := s.opts.Events.Subscribe(r.Header.Get("Last-Event-ID"))
	out := s.startStream(w, "text/event-stream")
	// With the id a client that sees nothing for long still knows where it is.
	alive := func() { out.write(": alive\nid: " + events.Position() + "\n\n") }
	out.write("retry: 2000\n")
	for alive(); out.err == nil && r.valid(); alive() {
		if err := s.sendEvents(r, out, events, wanted); !errors.Is(err, errQuiet) {
			break
		}
	}
	return nil
}

// errQuiet says that it is time to say that the stream lives.
var errQuiet = errors.New("nothing happened for a while")

// sendEvents streams the events that a caller wants and may see, until it is time
// to say that the stream lives.
func (s *Server) sendEvents(r *request, out *stream, events *event.Subscription, wanted []string) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), s.timing.keepAlive, errQuiet)
	defer cancel()
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return err
		}
		if !mayWatch(r.caller, e) || len(wanted) > 0 && e.Kind != event.KindGap && !slices.Contains(wanted, string(e.Kind)) {
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

// mayWatch reports whether a caller may see an event: an agent those of its
// own user, an approver those of the users whose calls it may decide, an admin
// all. What is nobody's is the admin's, except that the tools have changed.
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

// stream is an answer that is written as things happen. After an error it
// writes nothing more: the client is gone, or did not read for too long.
type stream struct {
	server *Server
	w      http.ResponseWriter
	err    error
}

// startStream begins an answer that goes on.
func (s *Server) startStream(w http.ResponseWriter, mediaType string) *stream {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("X-Accel-Buffering", "no") // for a proxy in between
	out := &stream{server: s, w: w}
	out.write("")
	return out
}

// write sends a text at once.
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
