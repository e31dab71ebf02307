package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/plugins/web/internal/fetch"
	"github.com/toolhost/toolhost/plugins/web/internal/guard"
	"github.com/toolhost/toolhost/plugins/web/internal/search"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// settings are the plugin's block in the host's configuration.
type settings struct {
	AllowDomains   []string `json:"allow_domains,omitempty" jsonschema:"the only domains that may be contacted, each with those below it; none means any. Redirects are held to it, too"`
	DenyDomains    []string `json:"deny_domains,omitempty" jsonschema:"domains that may not be contacted, each with those below it; also numbers of machines, whatever name leads there"`
	RequestDomains []string `json:"request_domains,omitempty" jsonschema:"the only domains that http_request may contact, of those that may be; none means all of them"`
	Ports          []int    `json:"ports,omitempty" jsonschema:"the only ports that may be contacted; default 80, 443, 8080 and 8443"`
	AllowPrivate   []string `json:"allow_private,omitempty" jsonschema:"networks that may be contacted although they are private, as 10.1.0.0/16 or 127.0.0.1/32; none by default. Names of private networks can be used then"`

	Robots       bool          `json:"robots,omitempty" jsonschema:"whether web_fetch keeps to the robots.txt of hosts" default:"true"`
	UserAgent    string        `json:"user_agent,omitempty" jsonschema:"what requests say of themselves; its first word is the name that robots.txt is asked about" default:"toolhost/1.0"`
	MaxSize      tool.ByteSize `json:"max_size,omitempty" jsonschema:"how much is read of one answer, as it comes and unpacked; at most 64MiB" default:"5MiB"`
	Timeout      time.Duration `json:"timeout,omitempty" jsonschema:"the time for one request with its redirects" default:"30s"`
	MaxRedirects int           `json:"max_redirects,omitempty" jsonschema:"how many redirects are followed" default:"5"`
	CacheSize    tool.ByteSize `json:"cache_size,omitempty" jsonschema:"how much is kept in memory of what was fetched" default:"32MiB"`
	Cookies      string        `json:"cookies,omitempty" jsonschema:"how long cookies are kept that servers set: for the one call, or for the session of the caller" enum:"call,session" default:"call"`

	HostRate        int `json:"host_rate,omitempty" jsonschema:"requests per minute to one host" default:"120"`
	HostConcurrency int `json:"host_concurrency,omitempty" jsonschema:"requests to one host at the same time" default:"4"`
	Concurrency     int `json:"concurrency,omitempty" jsonschema:"requests at the same time" default:"16"`

	Secrets map[string][]string `json:"secrets,omitempty" jsonschema:"which secrets http_request may put into headers, and for which hosts: those named here only, and with *.example.com those below a domain. The secret must be granted to the plugin, too"`

	Search searchSettings `json:"search,omitzero" jsonschema:"which service web_search asks"`
}

type searchSettings struct {
	Provider string `json:"provider,omitempty" jsonschema:"the service; none by default" enum:"searxng,brave,tavily,kagi"`
	URL      string `json:"url,omitempty" jsonschema:"its address; required for searxng, and that of the service by default for the others"`
	Secret   string `json:"secret,omitempty" jsonschema:"the name of the secret that is its key; the provider's name by default"`
}

// outside is what leads out of the plugin. The zero value is the real world; tests
// put their own in.
type outside struct {
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	tls    *tls.Config
	now    func() time.Time
	// unguarded contacts whatever is named, so that a test can show what the guard
	// is for.
	unguarded bool
}

// parts are what the settings make.
type parts struct {
	settings settings
	guard    *guard.Guard
	requests *guard.Guard // of http_request
	client   *fetch.Client
	jars     *jars
	secrets  map[string]guard.Hosts // for which hosts each is
	search   search.Provider        // nil: none
	asking   chan struct{}          // a place for each question to it
	apart    chan struct{}          // a place for each document that is read by a process of its own

	unguarded bool // see outside
}

// hostBurst is how many requests to one host may follow each other at once.
const hostBurst = 20

// maxApart is how many documents are read at once by processes of their own, and
// maxAsking how many questions there are at once to the search service.
const (
	maxApart  = 2
	maxAsking = 4
)

// configure takes the settings, which come before the first call.
func (w *web) configure(_ context.Context, _ sdk.Config, s settings) error {
	p := &parts{settings: s, asking: make(chan struct{}, maxAsking), apart: make(chan struct{}, maxApart), unguarded: w.outside.unguarded}
	if err := errors.Join(s.check(), p.guards(s)); err != nil {
		return err
	}
	check, judge := p.guard.Check, guard.Judge(p.guard)
	if w.outside.unguarded {
		check, judge = func(*url.URL) error { return nil }, nobody{}
	}
	p.client = fetch.New(fetch.Options{
		Check: check, Dial: w.outside.connect(judge), TLS: w.outside.tls, Now: w.outside.now,
		UserAgent: s.UserAgent, MaxBody: int64(s.MaxSize), Timeout: s.Timeout, MaxRedirects: s.MaxRedirects, CacheSize: int64(s.CacheSize),
		Limits: fetch.Limits{
			Total: s.Concurrency, PerHost: s.HostConcurrency, Rate: rate.Limit(float64(s.HostRate) / 60), Burst: hostBurst,
		},
	})
	w.stop(p.client.Close)
	if s.Cookies == "session" {
		p.jars = &jars{}
	}
	if err := p.searching(s.Search, w.outside); err != nil {
		return err
	}
	w.parts.Store(p)
	return nil
}

// connect returns what connects to a host by its name, if it may be contacted. All
// connections of the plugin are made here: a proxy of the host would take its place.
func (o outside) connect(judge guard.Judge) func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&guard.Dialer{Guard: judge, Lookup: o.lookup, Dial: o.dial}).DialContext
}

// nobody is a guard that refuses nothing, to show what one is for.
type nobody struct{}

// Address implements [guard.Judge].
func (nobody) Address(netip.AddrPort) error { return nil }

// check refuses settings out of their bounds.
func (s *settings) check() error {
	var all []error
	for _, b := range []struct {
		name           string
		value          int64
		least, most    int64
		shown, unitful string
	}{
		{"max_size", int64(s.MaxSize), int64(tool.KiB), int64(64 * tool.MiB), s.MaxSize.String(), "1KiB to 64MiB"},
		{"cache_size", int64(s.CacheSize), 0, int64(tool.GiB), s.CacheSize.String(), "0B to 1GiB"},
		{"timeout", int64(s.Timeout), int64(time.Millisecond), int64(2 * time.Minute), s.Timeout.String(), "1ms to 2m"},
		{"max_redirects", int64(s.MaxRedirects), 0, 20, fmt.Sprint(s.MaxRedirects), "0 to 20"},
		{"host_rate", int64(s.HostRate), 1, 100_000, fmt.Sprint(s.HostRate), "1 to 100000"},
		{"host_concurrency", int64(s.HostConcurrency), 1, 64, fmt.Sprint(s.HostConcurrency), "1 to 64"},
		{"concurrency", int64(s.Concurrency), 1, 256, fmt.Sprint(s.Concurrency), "1 to 256"},
	} {
		if b.value < b.least || b.value > b.most {
			all = append(all, setting("%s is %s, expected %s", []any{b.name, b.shown, b.unitful}, b.name))
		}
	}
	if strings.TrimSpace(s.UserAgent) == "" || !httpguts.ValidHeaderFieldValue(s.UserAgent) {
		all = append(all, setting("user_agent is empty, or holds characters that no header may have, such as a line break", nil, "user_agent"))
	}
	return errors.Join(all...)
}

func setting(format string, args []any, path ...string) error {
	return &sdk.SettingError{Path: path, Summary: fmt.Sprintf(format, args...)}
}

// guards makes the guards that the settings describe.
func (p *parts) guards(s settings) error {
	options := guard.Options{Ports: s.Ports, Allow: s.AllowDomains, Deny: s.DenyDomains}
	for i, text := range s.AllowPrivate {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return setting("allow_private: %q is no network, expected one as 10.1.0.0/16", []any{text}, "allow_private", fmt.Sprint(i))
		}
		options.Private = append(options.Private, network)
	}
	names := map[string]string{"ports": "ports", "private": "allow_private", "allow": "allow_domains", "deny": "deny_domains"}
	var err error
	if p.guard, err = newGuard(options, names); err != nil {
		return err
	}
	if p.requests, err = newGuard(guard.Options{Allow: s.RequestDomains}, map[string]string{"allow": "request_domains"}); err != nil {
		return err
	}
	p.secrets = make(map[string]guard.Hosts)
	for name, hosts := range s.Secrets {
		if len(hosts) == 0 {
			return setting("the secret %q is for no host: name those that it may be sent to", []any{name}, "secrets", name)
		}
		if p.secrets[name], err = guard.NewHosts(hosts); err != nil {
			return setting("secrets: %v", []any{err}, "secrets", name)
		}
	}
	return nil
}

// newGuard makes a guard, or says which setting is wrong.
func newGuard(o guard.Options, names map[string]string) (*guard.Guard, error) {
	g, err := guard.New(o)
	if wrong, ok := errors.AsType[*guard.OptionError](err); ok {
		return nil, setting("%s: %s", []any{names[wrong.Option], wrong.Reason}, names[wrong.Option])
	}
	return g, err
}

// searching makes the provider of web_search. Its address is the administrator's
// word: it may be in a private network, but no metadata of a cloud, and it is the
// only one that its client contacts.
func (p *parts) searching(s searchSettings, o outside) error {
	if s.Provider == "" {
		if s.URL != "" || s.Secret != "" {
			return setting("search has no provider: add provider = %q, %q, %q or %q", []any{"searxng", "brave", "tavily", "kagi"}, "search")
		}
		return nil
	}
	address := s.URL
	if address == "" {
		address = search.DefaultURL(s.Provider)
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return setting("search.url is %q, expected an address like https://search.example.org", []any{s.URL}, "search", "url")
	}
	client := &http.Client{
		Transport: &http.Transport{
			DialContext:            o.connect(guard.Named{}),
			TLSClientConfig:        o.tls,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: 64 << 10,
			IdleConnTimeout:        30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       p.settings.Timeout,
	}
	p.search, err = search.New(search.Options{Provider: s.Provider, URL: u, Client: client, UserAgent: p.settings.UserAgent, Now: o.now})
	return err
}

// searchSecret is the name of the secret that is the key of the provider; "" if it
// needs none.
func (p *parts) searchSecret() string {
	s := p.settings.Search
	if s.Secret != "" || slices.Contains([]string{"", "searxng"}, s.Provider) {
		return s.Secret
	}
	return s.Provider
}
