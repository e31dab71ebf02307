package policy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// URLs are the administrator's rules about the addresses that arguments name.
type URLs struct {
	// AllowDomains are the hosts that may be contacted, each with those below it;
	// none means any.
	AllowDomains []string `json:"allow_domains,omitempty"`
	Place        string   `json:"-"`
}

// deny decides about the addresses of a call that may not be contacted. What is no
// address that names a host is no domain of the list.
func (u *URLs) deny(in *Input) (Decision, bool) {
	if len(u.AllowDomains) == 0 {
		return Decision{}, false
	}
	for _, text := range in.URLs {
		host := HostOf(text)
		if slices.ContainsFunc(u.AllowDomains, func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }) {
			continue
		}
		return Decision{
			Verdict: Deny, Rule: "urls.allow_domains", Where: u.Place,
			Reason: "URL not allowed by security policy: " + tool.VisibleName(text),
			Change: fmt.Sprintf("add %q to allow_domains in the urls block", host),
		}, true
	}
	return Decision{}, false
}

// HostOf returns the host of an address in lower case, without a final dot; "" if
// it has none.
func HostOf(text string) string {
	parsed, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(parsed.Hostname()), ".")
}
