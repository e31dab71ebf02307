package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxLine bounds one line of a stream.
const maxLine = 1 * tool.MiB

// ErrEnded means that the host ended a stream: the host stopped, or the credential is no
// longer valid. To continue, open another stream.
var ErrEnded = errors.New("the host ended the stream")

// Event is an event of the host.
type Event struct {
	// ID is the position to continue from. An event without a kind has only a position.
	ID   string
	Kind event.Kind
	// Data is one of the types of package event, as JSON.
	Data json.RawMessage
}

// Events follows the events of the host: after the event with an id, or from now on if it
// is "". kinds selects events; none means all. It ends with ctx, or after an error, which
// is [ErrEnded] if the host ended the stream.
func (c *Client) Events(ctx context.Context, after string, kinds ...event.Kind) iter.Seq2[Event, error] {
	r := request{method: "GET", path: "/v1/events", header: http.Header{}, query: url.Values{}}
	if after != "" {
		r.header.Set("Last-Event-ID", after)
	}
	if len(kinds) > 0 {
		names := make([]string, len(kinds))
		for i, kind := range kinds {
			names[i] = string(kind)
		}
		r.query.Set("types", strings.Join(names, ","))
	}
	return func(yield func(Event, error) bool) {
		var e Event
		for line, err := range c.lines(ctx, r) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			if line != "" {
				e.set(line)
				continue
			}
			if e.ID != "" && !yield(e, nil) {
				return
			}
			e = Event{}
		}
	}
}

// set adds one line of an event (HTML, section 9.2.6).
func (e *Event) set(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "id":
		e.ID = value
	case "event":
		e.Kind = event.Kind(value)
	case "data":
		e.Data = append(e.Data, value...)
	}
}

// TailJournal follows the journal: after the row with a number, or from now on if it is
// negative. It ends with ctx, or after an error, which is [ErrEnded] if the host ended the
// stream.
func (c *Client) TailJournal(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	r := request{method: "GET", path: "/v1/journal/tail", query: url.Values{}}
	if after >= 0 {
		r.query.Set("after", strconv.FormatInt(after, 10))
	}
	return func(yield func(journal.Record, error) bool) {
		for line, err := range c.lines(ctx, r) {
			var row journal.Record
			if err == nil && line == "" {
				continue // a sign of life
			}
			if err == nil {
				err = json.Unmarshal([]byte(line), &row)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// lines opens a stream and returns its lines.
func (c *Client) lines(ctx context.Context, r request) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		response, err := c.open(ctx, r)
		if err != nil {
			yield("", err)
			return
		}
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, int(maxLine))
		for lines.Scan() {
			if !yield(lines.Text(), nil) {
				return
			}
		}
		switch err := lines.Err(); {
		case ctx.Err() != nil:
		case err == nil, errors.Is(err, io.ErrUnexpectedEOF):
			yield("", ErrEnded)
		default:
			yield("", fmt.Errorf("the stream broke off: %w", err))
		}
	}
}
