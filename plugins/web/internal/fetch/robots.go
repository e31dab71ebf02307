package fetch

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// What a robots.txt says is read as RFC 9309 has it, and as kindly as it asks for:
// a line that is none is left out.

const (
	// robotsAge is how long the rules of a host count, and robotsRetry how long it
	// counts that they could not be had.
	robotsAge   = time.Hour
	robotsRetry = time.Minute
	// maxRobotsText is how much of a robots.txt is read, and maxRobots how much is
	// kept of all.
	maxRobotsText = 512 << 10
	maxRobots     = 8 << 20
)

// robotsError says that a host does not want to be read by programs.
type robotsError struct {
	url         *url.URL
	unavailable bool // its robots.txt cannot be had; otherwise that forbids it
}

// Error implements error.
func (e *robotsError) Error() string { return "robots.txt of " + e.url.Host + " forbids it" }

// allowed asks the robots.txt of a host about an address.
func (c *Client) allowed(ctx context.Context, u *url.URL) error {
	answer, err := c.robotsOf(ctx, u)
	switch {
	case err != nil:
		return err
	case answer.Status >= 500 || answer.Status == http.StatusTooManyRequests:
		return &robotsError{url: u, unavailable: true}
	case answer.Status >= 300: // it has none
		return nil
	}
	agent, _, _ := strings.Cut(c.options.UserAgent, "/")
	if !rulesFor(first(agent), answer.Body).allow(u) {
		return &robotsError{url: u}
	}
	return nil
}

// first returns the first word of a text.
func first(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// robotsOf returns the robots.txt of a host, or an answer with the status 503 in its
// place.
func (c *Client) robotsOf(ctx context.Context, u *url.URL) (*Response, error) {
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	key := cacheKey{url: at.String()}
	if known := c.robots.get(key); known != nil && known.fresh(c.options.Now()) {
		return &known.answer, nil
	}
	answer, lifetime := Response{URL: at, Status: http.StatusServiceUnavailable}, robotsRetry
	response, err := c.follow(ctx, Request{URL: at, beginning: maxRobotsText})
	_, redirected := errors.AsType[*redirectError](err)
	_, unread := errors.AsType[*bodyError](err)
	switch {
	case err == nil:
		answer.Status, answer.Body = response.Status, response.Body
		response.Release()
		if answer.Status < 500 && answer.Status != http.StatusTooManyRequests {
			lifetime = robotsAge
		}
	case ctx.Err() != nil || errors.Is(err, errBusy) || !redirected && !unread && !elsewhere(err, u):
		return nil, err // the host cannot be reached at all, or not now, which says more
	}
	c.robots.put(key, &cached{answer: answer, born: c.options.Now(), lifetime: lifetime})
	return &answer, nil
}

// elsewhere reports whether a request failed at another host than that of an address.
func elsewhere(err error, u *url.URL) bool {
	hop, ok := errors.AsType[*hopError](err)
	return ok && hop.url.Host != u.Host
}

// robotsRule is a pattern of paths, and whether they may be read.
type robotsRule struct {
	pattern string
	allow   bool
}

// robotsRules are those that concern us.
type robotsRules []robotsRule

// rulesFor returns the rules for an agent in a robots.txt: those of all groups that
// name it, or if none does, those for everybody.
func rulesFor(agent string, text []byte) robotsRules {
	var own, all robotsRules
	named := false // some group names the agent
	// Of the group that is read: whom it is for, and whether it has a rule already.
	forUs, forAll, ruled := false, false, false
	text = bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF"))
	for line := range bytes.FieldsFuncSeq(text, func(c rune) bool { return c == '\n' || c == '\r' }) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		key, rest, _ := bytes.Cut(line, []byte(":"))
		value := string(bytes.TrimSpace(rest))
		switch key := strings.ToLower(string(bytes.TrimSpace(key))); key {
		case "user-agent":
			if ruled {
				forUs, forAll, ruled = false, false, false
			}
			name, _, _ := strings.Cut(value, "/")
			switch {
			case name == "*":
				forAll = true
			case strings.EqualFold(name, agent):
				forUs, named = true, true
			}
		case "allow", "disallow":
			ruled = true
			rule := robotsRule{pattern: patternOf(value), allow: key == "allow"}
			if value != "" && forUs {
				own = append(own, rule)
			}
			if value != "" && forAll {
				all = append(all, rule)
			}
		}
	}
	if named {
		return own
	}
	return all
}

// allow reports whether an address may be read, as it is written and as most servers
// read it, without dots and double slashes.
func (r robotsRules) allow(u *url.URL) bool {
	at := canonical(u.EscapedPath(), "")
	clean := path.Clean("/" + at)
	if strings.HasSuffix(at, "/") && clean != "/" {
		clean += "/"
	}
	query := ""
	if u.RawQuery != "" {
		query = "?" + canonical(u.RawQuery, "")
	}
	return r.allowText("/"+strings.TrimPrefix(at, "/")+query) && r.allowText(clean+query)
}

// allowText follows the rule with the longest pattern; of two of a length the kinder.
func (r robotsRules) allowText(text string) bool {
	longest, allow := -1, true
	for _, rule := range r {
		if n := len(rule.pattern); (n > longest || n == longest && rule.allow) && rule.matches(text) {
			longest, allow = n, rule.allow
		}
	}
	return allow
}

// patternOf is the pattern of a rule: a $ that is not at its end is one of a path.
func patternOf(value string) string {
	if start, whole := strings.CutSuffix(value, "$"); whole {
		return canonical(start, "*") + "$"
	}
	return canonical(value, "*")
}

// matches reports whether a path begins as the pattern says, in which * stands for
// anything and $ at the end for the end.
func (r robotsRule) matches(text string) bool {
	pattern, whole := strings.CutSuffix(r.pattern, "$")
	head, rest, more := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, head)
	for ok && more {
		head, rest, more = strings.Cut(rest, "*")
		if !more && whole {
			return strings.HasSuffix(text, head)
		}
		_, text, ok = strings.Cut(text, head)
	}
	return ok && (!whole || text == "")
}

// canonical writes the bytes of a path in one way, however they are escaped: those
// of special as they are if they are not escaped, and a slash, a question mark and a
// percent sign that are escaped as escapes.
func canonical(text, special string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		c, escaped := text[i], false
		if c == '%' && i+2 < len(text) {
			high, low := strings.IndexByte(hex, upper(text[i+1])), strings.IndexByte(hex, upper(text[i+2]))
			if high >= 0 && low >= 0 {
				c, escaped = byte(high<<4|low), true
				i += 2
			}
		}
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~!&'()+,;=:@", c) >= 0,
			!escaped && strings.IndexByte("/?"+special, c) >= 0:
			out.WriteByte(c)
		default:
			out.WriteByte('%')
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		}
	}
	return out.String()
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'f' {
		return c - 'a' + 'A'
	}
	return c
}
