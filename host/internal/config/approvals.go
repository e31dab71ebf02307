package config

import (
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// Approvals say how long people have to answer.
type Approvals struct {
	// Timeout is how long a question stays open; then the call is refused.
	// From 10 seconds to 24 hours.
	Timeout time.Duration
	// Patience is how long a client is kept waiting before it is told that the
	// call is pending; 0 tells it at once. At most 10 minutes, and never more
	// than Timeout.
	Patience time.Duration
	// ElicitationFrom names the MCP clients that may show a question to their
	// own user and bring back the answer.
	ElicitationFrom []string
}

const (
	defaultTimeout  = 10 * time.Minute
	defaultPatience = 45 * time.Second
)

// approvals reads the approvals block.
func (d *decoder) approvals(blocks []approvalsBlock) Approvals {
	a := Approvals{Timeout: defaultTimeout, Patience: defaultPatience}
	for _, block := range blocks {
		timeout, ok := d.durationWithin(block.Timeout, 10*time.Second, day, `a duration from "10s" to "24h"`)
		if ok {
			a.Timeout = timeout
			a.Patience = min(a.Patience, timeout)
		}
		if patience, ok := d.durationWithin(block.Patience, 0, 10*time.Minute, `a duration from "0s" to "10m"`); ok {
			if patience > a.Timeout {
				d.mistake(block.Patience.Expr.Range(), "Patience beyond the time-out",
					"Nobody waits longer than until the question is closed, which is after %v (timeout). Expected no more for patience.", a.Timeout)
			}
			a.Patience = patience
		}
		a.ElicitationFrom = append(a.ElicitationFrom, d.clients(block)...)
	}
	return a
}

// maxClientName bounds the bytes of a client's name, as what it says of itself
// is cut.
const maxClientName = 100

// clients reads the names of trusted clients.
func (d *decoder) clients(block approvalsBlock) []string {
	var names []string
	for _, w := range d.words(block.ElicitationFrom, `a list of names of MCP clients such as ["claude-code"]`) {
		hidden := func(r rune) bool { return !unicode.IsPrint(r) }
		switch {
		case w.text == "" || len(w.text) > maxClientName || !utf8.ValidString(w.text) || slices.ContainsFunc([]rune(w.text), hidden):
			d.mistake(w.expr.Range(), "Invalid client name",
				"%s cannot be the name of a client: expected 1 to %d printable characters, as the client calls itself.", quote(w.expr, w.text), maxClientName)
		case slices.Contains(names, w.text):
			d.mistake(w.expr.Range(), "Duplicate client", "%s is in the list already.", quote(w.expr, w.text))
		default:
			names = append(names, w.text)
		}
	}
	return names
}
