package policy

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Paths are the administrator's rules for paths in arguments.
type Paths struct {
	// WorkspaceOnly denies paths that are not in one of the workspace's folders.
	WorkspaceOnly bool `json:"workspace_only,omitempty"`
	// WorkspaceOnlyPlace is where that is configured.
	WorkspaceOnlyPlace string `json:"-"`
	// Forbidden are patterns of paths that calls and commands must not name. A pattern also covers
	// everything below what it matches.
	Forbidden []PathRule `json:"forbidden,omitempty"`
	// Sensitive are the files about which a person is asked.
	Sensitive Sensitive `json:"sensitive"`
}

// PathRule is a pattern of paths: absolute, beginning with "**/", or relative to the workspace. "*"
// and "?" match parts of a name, "**" any number of directories.
type PathRule struct {
	Pattern string `json:"pattern"`
	Place   string `json:"-"`
}

// Literal returns the pattern that matches only one path, for [PathRule] and [Sensitive].
func Literal(name string) string { return forbidden.Literal(name) }

// ParsePathRule checks a pattern. A pattern that begins with neither "/" nor "**/" is relative to
// the workspace until [Options.In] names one.
func ParsePathRule(pattern string) (string, error) {
	if pattern == "" {
		return "", fmt.Errorf("the pattern is empty")
	}
	if !strings.HasPrefix(pattern, "**/") {
		pattern = path.Clean(pattern)
	}
	if pattern = strings.TrimSuffix(pattern, "/"); pattern == "" {
		return "", fmt.Errorf("it covers everything: no call that names a path could run")
	}
	if !forbidden.Valid(pattern) {
		return "", fmt.Errorf("it is not a pattern: brackets or braces do not match")
	}
	return pattern, nil
}

// covers reports whether an absolute path, or a directory above it, matches.
func (r PathRule) covers(name string) bool { return forbidden.Covers(r.Pattern, name) }

// Forbidden returns the patterns of forbidden paths, for package forbidden of the sdk. The caller
// must not change the slice.
func (r *Rules) Forbidden() []string { return r.opts.Paths.Patterns() }

// Patterns returns the patterns of forbidden paths.
func (p *Paths) Patterns() []string {
	var all []string
	for _, rule := range p.Forbidden {
		all = append(all, rule.Pattern)
	}
	return all
}

// forbidden returns the rule that covers a path.
func (p *Paths) forbidden(name string) (PathRule, bool) {
	if i := slices.IndexFunc(p.Forbidden, func(r PathRule) bool { return r.covers(name) }); i >= 0 {
		return p.Forbidden[i], true
	}
	return PathRule{}, false
}

// denied is the decision about a path that the rule covers.
func (r PathRule) denied(reason string) Decision {
	return Decision{
		Verdict: Deny, Rule: fmt.Sprintf("paths.forbidden %q", r.Pattern), Where: r.Place, Reason: reason,
		Change: fmt.Sprintf("remove %q from forbidden in the paths block", r.Pattern),
	}
}

// deny returns the denial of a call with a path that it must not name.
func (p *Paths) deny(in *Input) (Decision, bool) {
	for _, named := range in.Paths {
		reason := "Path not allowed by security policy: " + tool.VisibleName(named.Name)
		if rule, ok := p.forbidden(named.Absolute); ok {
			return rule.denied(reason), true
		}
		if p.WorkspaceOnly && !in.inside(named.Absolute) {
			return Decision{
				Verdict: Deny, Rule: "paths.workspace_only", Where: p.WorkspaceOnlyPlace, Reason: reason,
				Change: "workspace_only = false in the paths block",
			}, true
		}
	}
	words := slices.Clone(in.Linked) // as written they may name no such path, and lead there
	for _, file := range in.files() {
		words = append(words, file.Path)
	}
	for _, named := range words {
		if rule, ok := p.forbidden(named.Absolute); ok {
			return rule.denied("Path blocked by security policy: " + tool.VisibleName(named.Name)), true
		}
	}
	return Decision{}, false
}

// URLs are the administrator's rules for addresses in arguments.
type URLs struct {
	// AllowDomains are the hosts that calls may contact, each with its subdomains; empty means all.
	AllowDomains []string `json:"allow_domains,omitempty"`
	Place        string   `json:"-"`
}

// deny returns the denial of a call with an address that it must not contact. An address without a
// host is not in the list.
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
