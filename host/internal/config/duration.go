package config

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
)

const day = 24 * time.Hour

const durationExample = `a duration such as "10s" or "5m"`

// duration reads a duration of more than zero.
func (d *decoder) duration(attr *hcl.Attribute, expected string) (time.Duration, bool) {
	s, ok := d.text(attr, expected)
	if !ok {
		return 0, false
	}
	t, err := parseDuration(s)
	if err != nil || t <= 0 {
		d.mistake(attr.Expr.Range(), "Not a duration", "Expected %s for %s, more than zero, not %s.", expected, attr.Name, quote(attr.Expr, s))
		return 0, false
	}
	return t, true
}

// durationWithin reads a duration within bounds, which expected describes.
func (d *decoder) durationWithin(attr *hcl.Attribute, least, most time.Duration, expected string) (time.Duration, bool) {
	s, ok := d.text(attr, expected)
	if !ok {
		return 0, false
	}
	t, err := parseDuration(s)
	switch {
	case err != nil:
		d.mistake(attr.Expr.Range(), "Not a duration", "Expected %s for %s, not %s.", expected, attr.Name, quote(attr.Expr, s))
		return 0, false
	case t < least || t > most:
		d.mistake(attr.Expr.Range(), "Out of range", "Expected %s for %s, not %s.", expected, attr.Name, quote(attr.Expr, s))
		return 0, false
	}
	return t, true
}

var errNotDays = errors.New("not a whole number of days")

// parseDuration is [time.ParseDuration] with optional leading days of 24 hours:
// "90d", "1d12h".
func parseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, errNotDays
	}
	t := time.Duration(n) * day
	if rest == "" {
		return t, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "-") || t+more < t {
		return 0, errNotDays
	}
	return t + more, nil
}
