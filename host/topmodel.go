package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/event"
)

// topModel is the state of the screen of toolhost top. Only the program's loop touches it.
type topModel struct {
	ctx           context.Context //nolint:containedctx // of the program; bubbletea's interface passes none
	app           *app
	c             *client.Client // of the host that answers
	absent        string         // why no host answers, "" if one does
	width, height int

	topNews
	fetching, again bool
	progress        map[string]string // of calls, by id
	events          []string          // the newest first
	selected        string            // the id of an approval or of a call
	chosen          bool              // a person has selected it
	card            *topCard          // nil means that the lists are shown
	asks            *topInput         // what is typed now, nil for nothing
	said            string            // an answer to the last key
}

// topInput is a line that a person types.
type topInput struct {
	prompt, text string
	done         func(text string) tea.Cmd
}

const (
	// maxEvents bounds the events that are kept.
	maxEvents = 100
	// maxInput bounds what is typed, in bytes.
	maxInput = 2000
)

// Init implements [tea.Model].
func (m *topModel) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		if m.card != nil {
			m.card.fit(m)
		}
	case topHost:
		m.c, m.absent, m.fetching = msg.c, "", false
		clear(m.progress)
		return m, m.refresh()
	case topAbsent:
		m.topNews, m.absent, m.card, m.asks = topNews{}, msg.reason, nil, nil
	case topEvent:
		return m, m.note(msg.Event)
	case topNews:
		return m, m.take(msg)
	case topOpened:
		m.open(msg)
	case topDecided:
		return m, m.decided(msg)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

// refresh asks the host for news, or again after the answer that is awaited.
func (m *topModel) refresh() tea.Cmd {
	if m.fetching {
		m.again = true
		return nil
	}
	m.fetching = true
	c := m.c
	return func() tea.Msg { return fetch(m.ctx, c) }
}

func (m *topModel) note(e client.Event) tea.Cmd {
	if e.Kind != event.KindToolProgress { // which the list of calls shows
		m.events = append([]string{about(e)}, m.events[:min(len(m.events), maxEvents-1)]...)
	}
	var progress event.ToolProgress
	if e.Kind == event.KindToolProgress && json.Unmarshal(e.Data, &progress) == nil {
		text := fmt.Sprintf("%g", progress.Progress.Progress)
		if progress.Total > 0 {
			text = fmt.Sprintf("%.0f%%", 100*progress.Progress.Progress/progress.Total)
		}
		m.progress[progress.ID] = strings.TrimSpace(text + " " + head(line(progress.Message), maxOwner))
	}
	if !changesLists(e.Kind) {
		return nil
	}
	return m.refresh()
}

func (m *topModel) take(news topNews) tea.Cmd {
	m.fetching = false
	if news.err == nil && m.absent == "" {
		m.topNews = news
		for id := range m.progress {
			if !slices.ContainsFunc(m.calls, func(c topCall) bool { return c.id == id }) {
				delete(m.progress, id)
			}
		}
		if ids := m.selectable(); !m.chosen || !slices.Contains(ids, m.selected) {
			m.selected, m.chosen = "", false
			if len(ids) > 0 {
				m.selected = ids[0]
			}
		}
	}
	var look tea.Cmd
	if m.card != nil && !m.card.closed && !slices.ContainsFunc(m.topNews.open, func(r approval.Record) bool { return r.ID == m.card.record.ID }) {
		look = m.look(m.card.record.ID) // it was decided elsewhere
	}
	if m.again {
		m.again = false
		return tea.Batch(look, m.refresh())
	}
	return look
}

// selectable returns the ids of what can be selected, in the order of the screen.
func (m *topModel) selectable() (ids []string) {
	for _, r := range m.topNews.open {
		ids = append(ids, r.ID)
	}
	for _, c := range m.calls {
		ids = append(ids, c.id)
	}
	return ids
}

func (m *topModel) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == "ctrl+c" {
		return tea.Quit
	}
	m.said = ""
	switch {
	case m.asks != nil:
		return m.typed(k)
	case m.card != nil:
		return m.cardKey(k)
	}
	switch k.String() {
	case "q":
		return tea.Quit
	case "j", "down":
		m.move(1)
	case "k", "up":
		m.move(-1)
	case "enter":
		if slices.ContainsFunc(m.topNews.open, func(r approval.Record) bool { return r.ID == m.selected }) {
			return m.look(m.selected)
		}
	case "c":
		return m.cancel()
	}
	return nil
}

func (m *topModel) move(step int) {
	ids := m.selectable()
	if i := slices.Index(ids, m.selected) + step; i >= 0 && i < len(ids) {
		m.selected, m.chosen = ids[i], true
	}
}

// cancel asks whether to cancel the selected call.
func (m *topModel) cancel() tea.Cmd {
	i := slices.IndexFunc(m.calls, func(c topCall) bool { return c.id == m.selected })
	if i < 0 {
		m.said = "select a call with j and k"
		return nil
	}
	id := m.selected
	m.asks = &topInput{prompt: "Cancel " + m.calls[i].tool + "? [y/N] ", done: func(text string) tea.Cmd {
		if !isYes(text) {
			return nil
		}
		c := m.c
		return func() tea.Msg {
			_, err := c.Cancel(m.ctx, id)
			return topDecided{said: "canceled " + id, err: err}
		}
	}}
	return nil
}

// typed takes a key of a line that a person types.
func (m *topModel) typed(k tea.KeyPressMsg) tea.Cmd {
	asks := m.asks
	switch k.String() {
	case "esc":
		m.asks = nil
	case "enter":
		m.asks = nil
		return asks.done(strings.TrimSpace(asks.text))
	case "backspace":
		if runes := []rune(asks.text); len(runes) > 0 {
			asks.text = string(runes[:len(runes)-1])
		}
	default:
		if len(asks.text)+len(k.Text) <= maxInput {
			asks.text += k.Text
		}
	}
	return nil
}

// topDecided is the host's answer to a decision about the approval with an id, or to a cancelation.
type topDecided struct {
	id, said string
	err      error
}

func (m *topModel) decided(answer topDecided) tea.Cmd {
	m.said = answer.said
	refused, ok := errors.AsType[*httpapi.Problem](answer.err)
	switch {
	case ok:
		m.said = line(refused.Detail + "; " + m.app.typable(refused.Hint))
	case answer.err != nil:
		m.said = line(answer.err.Error())
	}
	if m.card != nil && m.card.record.ID == answer.id {
		m.card.closed = false
		switch {
		case answer.err == nil:
			m.card = nil
		case ok && refused.Status == http.StatusConflict:
			return tea.Batch(m.look(answer.id), m.refresh())
		}
	}
	return m.refresh()
}

// grant asks which later calls shall run unasked, and approves the call with that grant.
func (m *topModel) grant(r approval.Record) {
	m.asks = &topInput{prompt: "Terms, such as --for 8h --path src (Enter: --always): ", done: func(text string) tea.Cmd {
		var grant grantFlags
		flags := pflag.NewFlagSet("terms", pflag.ContinueOnError)
		grant.register(flags)
		terms, err := grant.read(flags, text)
		if err != nil {
			m.said = line(err.Error())
			return nil
		}
		m.asks = &topInput{prompt: line(approveQuestion(flags, true)) + " [y/N] ", done: func(sure string) tea.Cmd {
			if !isYes(sure) {
				m.said = "nothing was decided"
				return nil
			}
			return m.decide(r, (*client.Client).Approve, client.Answer{Grant: terms})
		}}
		return nil
	}}
}

// decide sends a person's answer, which is bound to what was shown.
func (m *topModel) decide(r approval.Record, send func(*client.Client, context.Context, string, client.Answer) (approval.Record, error), answer client.Answer) tea.Cmd {
	c := m.c
	m.card.closed = true // a second key does not answer again
	return func() tea.Msg {
		record, err := send(c, m.ctx, r.ID, answer.Seen(r))
		return topDecided{id: r.ID, said: fmt.Sprintf("%s %s: %s", record.State, r.ID, line(record.Summary)), err: err}
	}
}
