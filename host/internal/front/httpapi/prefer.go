package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/excerpt"
)

// prefer is what a request prefers (RFC 7240) about how long its answer takes.
type prefer struct {
	async bool // an answer at once
	waits bool // an answer within wait
	wait  time.Duration
	// asks and patience: an answer once the call has waited so long for a
	// person.
	asks     bool
	patience time.Duration
}

// readPrefer reads the Prefer headers. "A server that does not recognize or is
// unable to comply with particular preference tokens ... MUST ignore those
// tokens" (RFC 7240, section 2); one that it knows and cannot read is a mistake.
func readPrefer(h http.Header) (prefer, error) {
	var p prefer
	for _, header := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(header, ",") {
			token, _, _ := strings.Cut(preference, ";") // parameters
			name, value, _ := strings.Cut(token, "=")
			value = strings.Trim(strings.TrimSpace(value), `"`)
			var err error
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "respond-async":
				p.async = true
			case "wait":
				err = first(name, value, &p.waits, &p.wait)
			case "approval-wait": // ours
				err = first(name, value, &p.asks, &p.patience)
			}
			if err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// first reads a number of seconds, unless one was given before: "the first
// instance ... SHALL be used" (section 2).
func first(name, value string, given *bool, wait *time.Duration) error {
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return badRequest().problem("the header Prefer has %s=%s, expected a number of seconds", name, excerpt.Printable(value, maxShown))
	}
	if !*given {
		*given, *wait = true, min(time.Duration(seconds)*time.Second, maxWait)
	}
	return nil
}

// applied tells the client what was done about its preference.
func (p prefer) applied(w http.ResponseWriter) {
	switch {
	case p.async:
		w.Header().Set("Preference-Applied", "respond-async")
	case p.waits:
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(p.wait/time.Second)))
	case p.asks:
		w.Header().Set("Preference-Applied", "approval-wait="+strconv.Itoa(int(p.patience/time.Second)))
	}
}
