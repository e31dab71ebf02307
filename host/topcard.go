package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// topCard is the whole of one call that waits, or waited, on the screen.
type topCard struct {
	record approval.Record
	rows   []string
	top    int  // the first row on the screen
	seen   bool // the last row was on the screen
	closed bool // it waits no longer
}

// topOpened is an approval that was fetched to be shown.
type topOpened struct {
	whole httpapi.Approval
	err   error
}

// look fetches an approval to show it. What is typed meanwhile decides nothing.
func (m *topModel) look(id string) tea.Cmd {
	c := m.c
	return func() tea.Msg {
		whole, err := c.Approval(m.ctx, id)
		return topOpened{whole, err}
	}
}

// open shows an approval that was fetched.
func (m *topModel) open(fetched topOpened) {
	r := fetched.whole.Record
	switch {
	case fetched.err != nil:
		m.said = line(fetched.err.Error())
		return
	case fetched.whole.MayNotDecide:
		m.said = "you may not decide about calls of " + line(r.User) + "; who may: " + line(fetched.whole.Approvers.String())
		return
	case m.card != nil && m.card.record.ID == r.ID && r.State != approval.Open:
		m.card.closed, m.asks = true, nil
		m.said = line((&closedError{r}).Error())
		return
	}
	m.card = &topCard{record: r, closed: r.State != approval.Open}
	m.card.fit(m)
}

// cardRows is how many rows of a call the screen has, beside the first and the last two lines.
func (m *topModel) cardRows() int { return max(1, m.height-3) }

// fit breaks the call into rows of the screen's width.
func (card *topCard) fit(m *topModel) {
	view := approval.Show(card.record)
	text := view.Colored(m.width)
	if os.Getenv("NO_COLOR") != "" {
		text = view.Text(m.width)
	}
	card.rows = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	card.scroll(m, 0)
}

// scroll moves the first row by n rows.
func (card *topCard) scroll(m *topModel, n int) {
	last := max(0, len(card.rows)-m.cardRows())
	card.top = min(max(0, card.top+n), last)
	card.seen = card.seen || card.top == last
}

// cardKey takes a key while a call is shown.
func (m *topModel) cardKey(k tea.KeyPressMsg) tea.Cmd {
	card := m.card
	switch key := k.String(); key {
	case "q", "esc":
		m.card = nil
	case "j", "down":
		card.scroll(m, 1)
	case "k", "up":
		card.scroll(m, -1)
	case "space", "pgdown":
		card.scroll(m, m.cardRows())
	case "b", "pgup":
		card.scroll(m, -m.cardRows())
	case "y", "a", "n":
		switch {
		case card.closed:
			m.said = "this call waits no longer; q goes back"
		case key == "n":
			m.asks = &topInput{prompt: "Reject; message for the model: ", done: func(text string) tea.Cmd {
				return m.decide(card.record, (*client.Client).Reject, client.Answer{Message: text})
			}}
		case !card.seen:
			m.said = "not all of the call was shown: Space shows more"
		case key == "y":
			return m.decide(card.record, (*client.Client).Approve, client.Answer{})
		case !card.record.Standing:
			m.said = "this call can only be approved once: " + line(cmp.Or(card.record.NoGrant, "the policy wants a person to see each such call"))
		default:
			m.grant(card.record)
		}
	}
	return nil
}

// view returns the lines of a card.
func (card *topCard) view(m *topModel) []string {
	r := card.record
	lines := []string{bold(fmt.Sprintf("%s waits until %s", r.Tool, r.Expires.Local().Format(time.TimeOnly)))}
	shown := card.rows[card.top:min(len(card.rows), card.top+m.cardRows())]
	lines = append(lines, shown...)
	return append(lines, make([]string, m.cardRows()-len(shown))...)
}

// cardKeys explains the keys while a call is shown.
func (card *topCard) keys(m *topModel) string {
	text := "y let it run once  n reject  a always  q leave it waiting"
	if more := len(card.rows) - card.top - m.cardRows(); more > 0 {
		text = fmt.Sprintf("%d more lines: Space  %s", more, text)
	}
	return text
}
