package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxAge bounds a duration in an argument: one hundred years.
const maxAge = 100 * 365 * 24 * time.Hour

// point parses a time in an argument: a date, a time with its zone, or a duration
// such as 7d or 12h. A duration counts from now in the direction of sign; if sign
// is 0, durations are refused. A date means its first moment in UTC, or its last if
// end is set. An empty text is the zero time.
func point(name, text string, now time.Time, sign int, end bool) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil && inRange(t) {
		return t.UTC(), nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil && inRange(t) {
		if end {
			return t.AddDate(0, 0, 1), nil
		}
		return t, nil
	}
	hint := "expected a date (2026-03-31) or a time with its zone (2026-03-31T18:00:00Z)"
	if sign != 0 {
		if d, ok := duration(text); ok {
			return now.Add(time.Duration(sign) * d), nil
		}
		hint += ", or a duration (12h, 30d)"
	}
	return time.Time{}, tool.Errorf(tool.InvalidArgument, "%s is not a time: %.60q", name, text).WithHint("%s", hint)
}

// inRange reports whether a time can be stored.
func inRange(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

// duration parses a duration. A day has 24 hours.
func duration(text string) (time.Duration, bool) {
	var d time.Duration
	if days, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, false
		}
		d, text = time.Duration(n)*24*time.Hour, rest
	}
	if text != "" {
		more, err := time.ParseDuration(text)
		if err != nil || more < 0 || more > maxAge {
			return 0, false
		}
		d += more
	}
	return d, d > 0 && d <= maxAge
}
