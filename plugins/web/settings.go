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
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/plugins/web/internal/fetch"
	"github.com/toolhost/toolhost/plugins/web/internal/search"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/guard"
	"github.com/toolhost/toolhost/sdk/proxy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// settings is the config block of the plugin.
type settings struct {
	AllowDomains   []string `json:"allow_domains,omitempty" jsonschema:"the only domains that may be contacted, including their subdomains; empty allows all. Applies to redirects, too"`
	DenyDomains    []string `json:"deny_domains,omitempty" jsonschema:"domains that may not be contacted, including their subdomains; may include IP addresses, which are refused for any host name"`
	RequestDomains []string `json:"request_domains,omitempty" jsonschema:"the only domains that http_request may contact, among the allowed ones; empty allows all of them"`
	Ports          []int    `json:"ports,omitempty" jsonschema:"the only ports that may be contacted; by default 80, 443, 8080 and 8443"`
	AllowPrivate   []string `json:"allow_private,omitempty" jsonschema:"private networks that may be contacted, such as 10.1.0.0/16 or 127.0.0.1/32; none by default. Also allows the host names of private networks"`

	Robots       bool          `json:"robots,omitempty" jsonschema:"whether web_fetch obeys the robots.txt of hosts" default:"true"`
	UserAgent    string        `json:"user_agent,omitempty" jsonschema:"the User-Agent header of requests; its first word is the name that robots.txt rules apply to" default:"toolhost/1.0"`
	MaxSize      tool.ByteSize `json:"max_size,omitempty" jsonschema:"the largest response body, both compressed and decompressed; at most 64MiB" min:"1KiB" max:"64MiB" default:"5MiB"`
	Timeout      time.Duration `json:"timeout,omitempty" jsonschema:"the time limit of a request with its redirects" min:"1ms" max:"2m" default:"30s"`
	MaxRedirects int           `json:"max_redirects,omitempty" jsonschema:"the number of redirects to follow" min:"0" max:"20" default:"5"`
	CacheSize    tool.ByteSize `json:"cache_size,omitempty" jsonschema:"the memory for fetched pages, which are kept for up to 15 minutes" min:"0B" max:"1GiB" default:"32MiB"`

	HostRate        int `json:"host_rate,omitempty" jsonschema:"requests per minute to one host" min:"1" max:"100000" default:"120"`
	HostConcurrency int `json:"host_concurrency,omitempty" jsonschema:"concurrent requests to one host" min:"1" max:"64" default:"4"`
	Concurrency     int `json:"concurrency,omitempty" jsonschema:"concurrent requests" min:"1" max:"256" default:"16"`

	Secrets map[string][]string `json:"secrets,omitempty" jsonschema:"the secrets that http_request may put into headers, each with its hosts; *.example.com means the subdomains of a domain. The plugin must also be granted the secret"`

	Search searchSettings `json:"search,omitzero" jsonschema:"the service that web_search uses"`
}

type searchSettings struct {
	Provider string `json:"provider,omitempty" jsonschema:"the service; none by default" enum:"searxng,brave,tavily,kagi"`
	URL      string `json:"url,omitempty" jsonschema:"the URL of the service; required for searxng"`
	Secret   string `json:"secret,omitempty" jsonschema:"the name of the secret that holds the API key; by default the name of the provider"`
}

// outside is the plugin's access to the network and the clock. The zero value is the real
// one; tests replace it.
type outside struct {
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	proxy  *url.URL // of the host; nil for none
	tls    *tls.Config
	now    func() time.Time
	// unguarded disables the guard, so that a test can show that the guard matters.
	unguarded bool
}

// parts is the state that the settings define.
type parts struct {
	settings settings
	guard    *guard.Guard
	requests *guard.Guard // further restricts http_request
	client   *fetch.Client
	secrets  map[string]guard.Hosts // the hosts of each secret
	search   search.Provider        // nil if none is configured
	asking   chan struct{}          // one slot for each concurrent query
	apart    chan struct{}          // one slot for each document that a separate process converts

	unguarded bool // see outside
}

// hostBurst is the number of requests to one host that may be sent at once.
const hostBurst = 20

// maxApart is the number of documents that separate processes convert at the same time.
// maxAsking is the number of concurrent queries to the search service.
const (
	maxApart  = 2
	maxAsking = 4
)

// configure applies the settings, which arrive before the first call.
func (w *web) configure(_ context.Context, cfg sdk.Config, s settings) error {
	outside := w.outside
	if cfg.Proxy != "" && outside.dial == nil {
		at, err := url.Parse(cfg.Proxy)
		if err != nil {
			return err
		}
		outside.proxy = at
	}
	p := &parts{settings: s, asking: make(chan struct{}, maxAsking), apart: make(chan struct{}, maxApart), unguarded: w.outside.unguarded}
	if err := errors.Join(s.check(outside.proxy != nil), p.guards(s)); err != nil {
		return err
	}
	check, judge := p.guard.Check, guard.Judge(p.guard)
	if w.outside.unguarded {
		check, judge = func(*url.URL) error { return nil }, allowAll{}
	}
	p.client = fetch.New(fetch.Options{
		Check: check, Dial: outside.connect(judge), TLS: w.outside.tls, Now: w.outside.now,
		UserAgent: s.UserAgent, MaxBody: int64(s.MaxSize), Timeout: s.Timeout, MaxRedirects: s.MaxRedirects, CacheSize: int64(s.CacheSize),
		Limits: fetch.Limits{
			Total: s.Concurrency, PerHost: s.HostConcurrency, Rate: rate.Limit(float64(s.HostRate) / 60), Burst: hostBurst,
		},
	})
	w.stop(p.client.Close)
	if err := p.searching(s.Search, outside); err != nil {
		return err
	}
	w.parts.Store(p)
	return nil
}

// dialFor returns a function that connects through the host's proxy on behalf of a call; nil if there
// is no proxy. The proxy decides about the host and its addresses.
func dialFor(c *sdk.Call) func(ctx context.Context, network, address string) (net.Conn, error) {
	at := c.Proxy()
	if at == nil {
		return nil
	}
	return func(ctx context.Context, _, address string) (net.Conn, error) { return throughProxy(ctx, at, address) }
}

// throughProxy connects through the host's proxy.
func throughProxy(ctx context.Context, at *url.URL, address string) (net.Conn, error) {
	conn, err := proxy.Dial(ctx, at, address)
	if refused, ok := errors.AsType[*proxy.RefusedError](err); ok {
		return nil, &guard.RefusalError{Address: refused.Address, Reason: strings.TrimPrefix(refused.Reason, "no connection to "+refused.Address+": "), Hint: refused.Hint}
	}
	if failed, ok := errors.AsType[*proxy.FailedError](err); ok {
		return nil, unproxied(failed)
	}
	return conn, err
}

// unproxied returns the error of a connection that the host could not make, as it is without a proxy.
func unproxied(failed *proxy.FailedError) error {
	host, _, _ := net.SplitHostPort(failed.Address) // as the plugin asked for it
	dial := func(cause error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: cause} }
	switch failed.Kind {
	case proxy.UnknownHost:
		return &net.DNSError{Err: failed.Reason, Name: host, IsNotFound: true}
	case proxy.LookupFailed:
		return &net.DNSError{Err: failed.Reason, Name: host, IsTemporary: true}
	case proxy.ConnectionRefused:
		return dial(syscall.ECONNREFUSED)
	case proxy.TimedOut:
		return dial(os.ErrDeadlineExceeded)
	}
	return failed
}

// connect returns a function that connects to a host if judge allows its addresses. All
// connections without a call go through it.
func (o outside) connect(judge guard.Judge) func(ctx context.Context, network, address string) (net.Conn, error) {
	if o.proxy != nil {
		return func(ctx context.Context, _, address string) (net.Conn, error) {
			return throughProxy(ctx, o.proxy, address)
		}
	}
	return (&guard.Dialer{Guard: judge, Lookup: o.lookup, Dial: o.dial}).DialContext
}

// allowAll is a guard that allows everything; see outside.unguarded.
type allowAll struct{}

// Address implements [guard.Judge].
func (allowAll) Address(netip.AddrPort) error { return nil }

// check refuses a User-Agent that cannot be sent, and addresses that only the proxy sees.
func (s *settings) check(proxied bool) error {
	for i, text := range s.DenyDomains {
		if _, err := netip.ParseAddr(text); err == nil && proxied {
			return setting("deny_domains: the address %q has no effect behind the proxy, which resolves names itself; add it to deny in the plugin's network block", []any{text}, "deny_domains", fmt.Sprint(i))
		}
	}
	if strings.TrimSpace(s.UserAgent) == "" || !httpguts.ValidHeaderFieldValue(s.UserAgent) {
		return setting("user_agent is empty or contains invalid characters, such as a line break", nil, "user_agent")
	}
	return nil
}

func setting(format string, args []any, path ...string) error {
	return &sdk.SettingError{Path: path, Summary: fmt.Sprintf(format, args...)}
}

// guards creates the guards that the settings describe.
func (p *parts) guards(s settings) error {
	options := guard.Options{Ports: s.Ports, Allow: s.AllowDomains, Deny: s.DenyDomains}
	for i, text := range s.AllowPrivate {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return setting("allow_private: %q is not a network, expected one such as 10.1.0.0/16", []any{text}, "allow_private", fmt.Sprint(i))
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
			return setting("the secret %q has no hosts: list the hosts that it may be sent to", []any{name}, "secrets", name)
		}
		if p.secrets[name], err = guard.NewHosts(hosts); err != nil {
			return setting("secrets: %v", []any{err}, "secrets", name)
		}
	}
	return nil
}

// newGuard returns a guard, or an error that names the wrong setting.
func newGuard(o guard.Options, names map[string]string) (*guard.Guard, error) {
	g, err := guard.New(o)
	if wrong, ok := errors.AsType[*guard.OptionError](err); ok {
		return nil, setting("%s: %s", []any{names[wrong.Option], wrong.Reason}, names[wrong.Option])
	}
	return g, err
}

// searching creates the provider of web_search. The administrator chooses its URL, so it
// may be in a private network, but never a metadata address of a cloud. Its client
// contacts no other host.
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
		return setting("search.url is %q, expected a URL such as https://search.example.org", []any{s.URL}, "search", "url")
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

// searchSecret returns the name of the secret that holds the API key of the provider; ""
// if it needs none.
func (p *parts) searchSecret() string {
	s := p.settings.Search
	if s.Secret != "" || slices.Contains([]string{"", "searxng"}, s.Provider) {
		return s.Secret
	}
	return s.Provider
}
