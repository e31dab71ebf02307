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

// Paths are the administrator's rules about the paths that arguments name.
type Paths struct {
	// WorkspaceOnly denies paths that are not in one of the workspace's folders.
	WorkspaceOnly bool `json:"workspace_only,omitempty"`
	// WorkspaceOnlyPlace is where that is configured.
	WorkspaceOnlyPlace string `json:"-"`
	// Forbidden are patterns of paths that no call may name, nor anything below
	// them, in commands neither.
	Forbidden []PathRule `json:"forbidden,omitempty"`
	// Sensitive are the files about which a person is asked.
	Sensitive Sensitive `json:"sensitive"`
}

// PathRule is a pattern of paths: absolute, or beginning with "**/". "*" and "?"
// stand for parts of a name, "**" for any number of directories.
type PathRule struct {
	Pattern string `json:"pattern"`
	Place   string `json:"-"`
}

// Literal returns the pattern of a path that means that path alone, for [PathRule] and
// [Sensitive].
func Literal(name string) string { return forbidden.Literal(name) }

// ParsePathRule checks a pattern. One that begins with neither "/" nor "**/" is
// relative to a folder.
func ParsePathRule(pattern, folder string) (string, error) {
	if pattern == "" {
		return "", fmt.Errorf("the pattern is empty")
	}
	if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "**/") {
		pattern = path.Join(Literal(folder), pattern)
	}
	if strings.HasPrefix(pattern, "/") {
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

// covers reports whether an absolute path, or a directory that it lies in, matches.
func (r PathRule) covers(name string) bool { return forbidden.Covers(r.Pattern, name) }

// Elsewhere returns the rule for where the part of the pattern leads that has no
// wildcards, as resolve says, and whether that is elsewhere. The name at the end of a
// pattern without wildcards is what is meant, a link or not.
func (r PathRule) Elsewhere(resolve func(path string) string) (PathRule, bool) {
	dir, rest := forbidden.Split(r.Pattern)
	if rest == "" {
		dir, rest = path.Dir(dir), forbidden.Literal(path.Base(dir))
	}
	leads := resolve(dir)
	r.Pattern = path.Join(forbidden.Literal(leads), rest)
	return r, leads != dir
}

// Forbidden returns the patterns of paths that no call may use, as package forbidden of
// the sdk reads them. The caller must not change the slice.
func (r *Rules) Forbidden() []string { return r.opts.Paths.Patterns() }

// Patterns returns the patterns of what is forbidden.
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

// deny decides about the paths of a call that may not be named.
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
