package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/excerpt"
)

// query reads the parameters of a request's address. The first mistake is kept
// until the end.
type query struct {
	values  url.Values
	mistake *Problem
}

// readQuery takes the parameters, of which all names must be known and none may
// stand twice.
func readQuery(r *http.Request, known ...string) *query {
	q := &query{}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		q.mistake = badRequest().problem("the parameters cannot be read: %v", err)
		return q
	}
	q.values = values
	for name, list := range values {
		switch {
		case len(known) == 0:
			q.fail("%q is no parameter: this path has none", excerpt.Printable(name, maxShown))
		case !slices.Contains(known, name):
			q.fail("%q is no parameter here", excerpt.Printable(name, maxShown))
			q.mistake.Hint = "parameters are " + strings.Join(known, ", ")
		case len(list) > 1:
			q.fail("the parameter %s stands twice", name)
		}
	}
	return q
}

func (q *query) fail(format string, args ...any) {
	if q.mistake == nil {
		q.mistake = badRequest().problem(format, args...)
	}
}

// err returns the first mistake.
func (q *query) err() error {
	if q.mistake == nil {
		return nil
	}
	return q.mistake
}

func (q *query) text(name string) string { return q.values.Get(name) }

// list returns the values between commas.
func (q *query) list(name string) []string {
	if !q.values.Has(name) {
		return nil
	}
	return strings.Split(q.values.Get(name), ",")
}

// number returns a number that is not negative, 0 if there is none.
func (q *query) number(name string) int64 {
	text := q.values.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		q.fail("%s is %q, expected a number", name, excerpt.Printable(text, maxShown))
		return 0
	}
	return n
}

// time returns a time, the zero time if there is none.
func (q *query) time(name string) time.Time {
	text := q.values.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.fail("%s is %q, expected a time such as 2026-01-31T15:04:05Z", name, excerpt.Printable(text, maxShown))
	}
	return t
}

// wait returns how long an answer may be held back, at most [maxWait].
func (q *query) wait() time.Duration {
	text := q.values.Get("wait")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if seconds, atoiErr := strconv.Atoi(text); atoiErr == nil && seconds < int(maxWait/time.Second) {
		d, err = time.Duration(seconds)*time.Second, nil
	} else if atoiErr == nil {
		d, err = maxWait, nil
	}
	if err != nil || d < 0 {
		q.fail("wait is %q, expected a duration such as 30s", excerpt.Printable(text, maxShown))
		return 0
	}
	return min(d, maxWait)
}

// maxWait is how long a request may wait for something to happen.
const maxWait = 10 * time.Minute
