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

// ErrEnded says that the host ended a stream: it stopped, or the credential
// does not count any more. Who wants to see on asks again.
var ErrEnded = errors.New("the host ended the stream")

// Event is an event of the host.
type Event struct {
	// ID names the place to continue after. Events without a kind say nothing
	// but that.
	ID   string
	Kind event.Kind
	// Data is one of the types of package event, as JSON.
	Data json.RawMessage
}

// Events follows what happens in the host: after the event with an id, or from
// now on if it is "". Kinds choose; none means all. It ends with ctx, or after
// an error, which is [ErrEnded] if the host ended it.
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

// set takes up one line of an event (the WHATWG's HTML, section 9.2.6).
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

// TailJournal follows the journal: after the row with a number, or from now on
// if it is less than 0. It ends with ctx, or after an error, which is
// [ErrEnded] if the host ended it.
func (c *Client) TailJournal(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	r := request{method: "GET", path: "/v1/journal/tail", query: url.Values{}}
	if after >= 0 {
		r.query.Set("after", strconv.FormatInt(after, 10))
	}
	return func(yield func(journal.Record, error) bool) {
		for line, err := range c.lines(ctx, r) {
			var row journal.Record
			if err == nil && line == "" {
				continue // the stream lives
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

// lines asks for a stream and gives its lines.
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
