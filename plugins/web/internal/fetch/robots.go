package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

// Rules are read as RFC 9309 defines them. It asks for leniency, so lines that cannot be
// parsed are ignored.

const (
	// robotsAge is how long the rules of a host are kept. robotsRetry is how long it is
	// kept that they are unavailable.
	robotsAge   = time.Hour
	robotsRetry = time.Minute
	// maxRobotsText is the number of bytes to read of a robots.txt, and maxRobots the
	// number of bytes to keep of all of them.
	maxRobotsText = 512 << 10
	maxRobots     = 8 << 20
)

// robotsFile is the robots.txt of a host.
type robotsFile struct {
	status int
	text   []byte
}

// unavailable reports whether the rules of the host are unknown, so that no page of it
// may be read.
func (f robotsFile) unavailable() bool {
	return f.status >= 500 || f.status == http.StatusTooManyRequests
}

// robotsError reports that robots.txt keeps a URL from being read.
type robotsError struct {
	url         *url.URL
	unavailable bool // robots.txt itself cannot be read
}

// Error implements error.
func (e *robotsError) Error() string { return "robots.txt of " + e.url.Host + " disallows it" }

// allowed returns an error if the robots.txt of its host disallows a URL.
func (c *Client) allowed(ctx context.Context, r Request) error {
	u := r.URL
	file, err := c.robotsOf(ctx, r)
	switch {
	case err != nil:
		return err
	case file.unavailable():
		return &robotsError{url: u, unavailable: true}
	case file.status >= 300: // the host has none
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimSpace(c.options.UserAgent), " ")
	name, _, _ = strings.Cut(name, "/")
	if !rulesFor(name, file.text).allow(u) {
		return &robotsError{url: u}
	}
	return nil
}

// robotsOf returns the robots.txt of a host. If it cannot be read, it is unavailable.
func (c *Client) robotsOf(ctx context.Context, r Request) (robotsFile, error) {
	u := r.URL
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	key := at.String()
	if file, ok := c.robots.get(key); ok {
		return file, nil
	}
	file := robotsFile{status: http.StatusServiceUnavailable}
	response, err := c.follow(ctx, Request{URL: at, transport: r.transport, tunnels: r.tunnels, beginning: maxRobotsText})
	_, redirected := errors.AsType[*redirectError](err)
	_, unread := errors.AsType[*bodyError](err)
	switch {
	case err == nil:
		file = robotsFile{status: response.Status, text: response.Body}
		response.Release()
	case ctx.Err() != nil || errors.Is(err, errBusy) || !redirected && !unread && !elsewhere(err, u):
		return robotsFile{}, err // the host itself cannot be reached: the better error
	}
	lifetime := robotsAge
	if file.unavailable() {
		lifetime = robotsRetry
	}
	c.robots.put(key, file, entrySize+int64(len(key)+cap(file.text)), lifetime)
	return file, nil
}

// elsewhere reports whether a request failed at another host than that of u.
func elsewhere(err error, u *url.URL) bool {
	hop, ok := errors.AsType[*hopError](err)
	return ok && hop.url.Host != u.Host
}

// robotsRule allows or disallows the paths that match a pattern.
type robotsRule struct {
	pattern string
	allow   bool
}

// robotsRules are the rules that apply to one agent.
type robotsRules []robotsRule

// rulesFor returns the rules for an agent: those of all groups that name it, or if there
// are none, those of all groups for "*".
func rulesFor(agent string, text []byte) robotsRules {
	var own, all robotsRules
	named := false // a group names the agent
	// The current group: whether it names us or "*", and whether it has a rule.
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

// allow reports whether a URL may be read. Its path must be allowed both as written and
// as most servers read it, without dot segments and double slashes.
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

// allowText applies the rule with the longest matching pattern. Among patterns of the same
// length, an allowing rule wins.
func (r robotsRules) allowText(text string) bool {
	longest, allow := -1, true
	for _, rule := range r {
		if n := len(rule.pattern); (n > longest || n == longest && rule.allow) && rule.matches(text) {
			longest, allow = n, rule.allow
		}
	}
	return allow
}

// patternOf returns the canonical pattern of a rule. Only at its end is a $ special.
func patternOf(value string) string {
	if start, whole := strings.CutSuffix(value, "$"); whole {
		return canonical(start, "*") + "$"
	}
	return canonical(value, "*")
}

// matches reports whether the pattern matches the beginning of a path. In the pattern, *
// stands for any text, and a $ at its end for the end of the path.
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

// canonical returns a path in one spelling, however its bytes are escaped. Slashes,
// question marks and the bytes of special keep their meaning: they are escaped in the
// result only if they are escaped in text.
func canonical(text, special string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		c, escaped := text[i], false
		if c == '%' && i+2 < len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				c, escaped = byte(b), true
				i += 2
			}
		}
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~!&'()+,;=:@", c) >= 0,
			!escaped && strings.IndexByte("/?"+special, c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}
