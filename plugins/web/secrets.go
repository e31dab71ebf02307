package main

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// secretMark matches the placeholder of a secret in a header.
var secretMark = regexp.MustCompile(`\{\{ *secret: *([A-Za-z0-9][A-Za-z0-9_.-]{0,63}) *\}\}`)

// secretsIn returns the sorted names of the secrets in headers. It refuses a secret that
// may not be sent to the host of the URL.
func (p *parts) secretsIn(header http.Header, u *url.URL) ([]string, error) {
	found := make(map[string]bool)
	for _, values := range header {
		for _, match := range secretMark.FindAllStringSubmatch(strings.Join(values, " "), -1) {
			found[match[1]] = true
		}
	}
	names := slices.Sorted(maps.Keys(found))
	for _, name := range names {
		hosts := p.secrets[name]
		switch {
		case hosts == nil:
			return nil, tool.Errorf(tool.PermissionDenied, "the secret %q may not be sent to any host", name).
				WithHint("the administrator lists the secret and its hosts in the secrets setting of the plugin")
		case !hosts.Have(u.Hostname()):
			return nil, tool.Errorf(tool.PermissionDenied, "the secret %q may not be sent to %s", name, display.Name(u.Hostname())).
				WithHint("the administrator lists the hosts of the secret in the secrets setting of the plugin")
		case u.Scheme != "https" && !loopback(u.Hostname()):
			return nil, tool.Errorf(tool.PermissionDenied, "the secret %q would be sent unencrypted", name).WithHint("use https")
		}
	}
	return names, nil
}

// loopback reports whether a host is a loopback IP address.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// reveal puts the values of the secrets into the headers. It returns the values by name.
func (r *request) reveal(ctx context.Context, c *sdk.Call) (map[string]string, error) {
	values := make(map[string]string)
	for _, name := range r.secrets {
		value, err := c.Secret(ctx, name)
		if err != nil {
			return nil, err
		}
		value = strings.TrimSpace(value)
		if strings.ContainsAny(value, "\r\n\x00") || value == "" {
			return nil, tool.Errorf(tool.Failed, "the secret %q cannot be used in a header: it is empty or has more than one line", name)
		}
		values[name] = value
	}
	for _, all := range r.header {
		for i, value := range all {
			all[i] = secretMark.ReplaceAllStringFunc(value, func(mark string) string {
				return values[secretMark.FindStringSubmatch(mark)[1]]
			})
		}
	}
	return values, nil
}

// hider removes the values of secrets from a response, since a server may echo them.
type hider struct {
	replacer *strings.Replacer
	values   []string
	longest  int // the length of the longest value in bytes
}

// newHider returns a hider for secrets, which it takes as values by name.
func newHider(secrets map[string]string) *hider {
	type pair struct{ value, name string }
	var pairs []pair
	for name, value := range secrets {
		pairs = append(pairs, pair{value, name})
		if escaped := url.QueryEscape(value); escaped != value {
			pairs = append(pairs, pair{escaped, name})
		}
	}
	// The longest value is first, since another value may be a prefix of it.
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(len(b.value)-len(a.value), strings.Compare(a.name, b.name)) })
	h := &hider{}
	var replacements []string
	for _, p := range pairs {
		replacements = append(replacements, p.value, "[secret "+p.name+"]")
		h.values = append(h.values, p.value)
		h.longest = max(h.longest, len(p.value))
	}
	h.replacer = strings.NewReplacer(replacements...)
	return h
}

// hide returns text with each value replaced by "[secret NAME]".
func (h *hider) hide(text string) string { return h.replacer.Replace(text) }

// beginning is like hide for the beginning of a longer text: it also drops the start of a
// value at the end of text.
func (h *hider) beginning(text string) string {
	for start := h.startAtEnd(text); start < len(text); start = h.startAtEnd(text) {
		text = text[:start]
	}
	return h.hide(text)
}

// startAtEnd returns the index of the start of a value at the end of text, or len(text)
// if text does not end in one.
func (h *hider) startAtEnd(text string) int {
	for at := max(0, len(text)-h.longest); at < len(text); at++ {
		for _, value := range h.values {
			if len(text)-at < len(value) && strings.HasPrefix(value, text[at:]) {
				return at
			}
		}
	}
	return len(text)
}
