package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/state/event"
)

// events tells a page that something has changed, and of which kind: the page then asks for what it
// shows. It has the ids of /v1/events.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	r.Header.Set(liveHeader, "events") // an open page alone does not keep the login
	v, err := c.visit(w, r)
	if err != nil {
		c.loggedOut(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	control := http.NewResponseController(w)
	send := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(maxWrite)) // a test has none
		_, err := w.Write([]byte(text))
		return err == nil && control.Flush() == nil
	}
	if !send("retry: 500\n\n") {
		return
	}
	kinds := event.Kinds()
	for e, err := range v.api.Events(r.Context(), r.Header.Get("Last-Event-ID"), kinds...) {
		if err != nil { // the host stops, or the login has ended: the browser comes again
			return
		}
		text := "id: " + e.ID + "\n"
		if slices.Contains(kinds, e.Kind) {
			text += "data: " + string(e.Kind) + "\n"
		} else {
			text += ": alive\n"
		}
		if !send(text + "\n") {
			return
		}
	}
}
