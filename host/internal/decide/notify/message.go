package notify

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Kind is the kind of a message.
type Kind string

// The kinds of messages.
const (
	Waiting  Kind = "approval.waiting"
	Reminder Kind = "approval.reminder"
	Decided  Kind = "approval.decided"
	Test     Kind = "test"
)

// maxName bounds the bytes of a name in a message.
const maxName = 200

// Message is what a receiver gets, as JSON.
type Message struct {
	// ID is the same in each attempt to deliver the message.
	ID        string    `json:"-"`
	Kind      Kind      `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data is what a message is about. All texts can be shown as they are: they have no control and no
// invisible characters, and no line breaks.
type Data struct {
	// ID is the approval's; "" in a test.
	ID     string `json:"id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Plugin string `json:"plugin,omitempty"`
	User   string `json:"user,omitempty"`
	// Summary is a sentence of the host for a person.
	Summary string `json:"summary"`
	// State is that of the approval.
	State     approval.State `json:"state,omitempty"`
	DecidedBy string         `json:"decided_by,omitempty"`
	// Expires is until when someone can decide.
	Expires time.Time `json:"expires,omitzero"`
	// URL is the page where a person who has logged in decides.
	URL string `json:"url,omitempty"`
}

// message returns the message of a kind about a record.
func (s *Service) message(n *Notifier, kind Kind, r approval.Record) Message {
	m := Message{ID: r.ID, Kind: kind, Timestamp: s.now().UTC().Truncate(time.Second), Data: Data{
		ID: r.ID, Tool: shown(r.Tool), Plugin: shown(r.Plugin), User: shown(r.User), State: r.State, URL: s.link(r.ID),
	}}
	d := &m.Data
	what := fmt.Sprintf("A call of %s (plugin %s) for %s", d.Tool, d.Plugin, d.User)
	switch kind {
	case Waiting:
		d.Expires, d.Summary = r.Expires, what+" waits for a person"
	case Reminder:
		m.ID += ".reminder"
		d.Expires, d.Summary = r.Expires, what+" still waits for a person"
	case Decided:
		m.ID += ".decided"
		d.Summary = what + " was " + string(r.State)
		if r.State == approval.Expired {
			d.Summary = what + " expired: no one decided in time"
		}
		if d.DecidedBy = shown(r.DecidedBy); d.DecidedBy != "" {
			d.Summary += " by " + d.DecidedBy
		}
	case Test:
	}
	if n.Details {
		d.Summary += ": " + r.Summary
	}
	return m
}

// test returns a message for a test.
func (s *Service) test(n *Notifier) Message {
	now := s.now().UTC()
	return Message{
		ID: fmt.Sprintf("test_%d", now.UnixNano()), Kind: Test, Timestamp: now.Truncate(time.Second),
		Data: Data{Summary: fmt.Sprintf("This is a test of notifier %s of toolhost: nothing waits", n.Name), URL: s.link("")},
	}
}

// shown returns a name as a message shows it.
func shown(name string) string {
	if name == "" {
		return ""
	}
	return tool.VisibleName(excerpt.Of(name, maxName))
}

// body returns the message as JSON.
func (m Message) body() ([]byte, error) { return json.Marshal(m) }

// facts returns the message as variables of the environment.
func (m Message) facts() []string {
	d := m.Data
	expires := ""
	if !d.Expires.IsZero() {
		expires = d.Expires.Format(time.RFC3339)
	}
	return []string{
		"TOOLHOST_MESSAGE=" + m.ID, "TOOLHOST_TYPE=" + string(m.Kind), "TOOLHOST_ID=" + d.ID, "TOOLHOST_TOOL=" + d.Tool,
		"TOOLHOST_PLUGIN=" + d.Plugin, "TOOLHOST_USER=" + d.User, "TOOLHOST_SUMMARY=" + d.Summary, "TOOLHOST_STATE=" + string(d.State),
		"TOOLHOST_DECIDED_BY=" + d.DecidedBy, "TOOLHOST_EXPIRES=" + expires, "TOOLHOST_LINK=" + d.URL,
	}
}
