package config

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/sensitive"
)

// pathRules reads the policy for paths.
func (d *decoder) pathRules(blocks []pathsBlock, workspace string) policy.Paths {
	var rules policy.Paths
	for _, b := range blocks {
		if rules.WorkspaceOnly = d.flag(b.WorkspaceOnly, false); rules.WorkspaceOnly {
			rules.WorkspaceOnlyPlace = diag.Place(b.WorkspaceOnly.NameRange)
		}
		for _, w := range d.words(b.Forbidden, `a list of patterns such as ["**/.ssh", "/etc/shadow"]`) {
			if w.text == "~" || strings.HasPrefix(w.text, "~/") {
				d.mistake(w.expr.Range(), "Relative pattern", "~ has no meaning in a pattern: this one is relative to the workspace. For the home directory, write pathexpand(%s).", quote(w.expr, w.text))
				continue
			}
			if d.notExpanded(w) {
				continue
			}
			d.warnPattern("forbidden", w, workspace)
			pattern, err := policy.ParsePathRule(w.text)
			if err != nil {
				d.mistake(w.expr.Range(), "Not a pattern", "%s cannot be used: %v.", quote(w.expr, w.text), err)
				continue
			}
			if slices.ContainsFunc(rules.Forbidden, func(r policy.PathRule) bool { return r.Pattern == pattern }) {
				d.mistake(w.expr.Range(), "Duplicate entry", "%s is already in the list.", quote(w.expr, w.text))
				continue
			}
			rules.Forbidden = append(rules.Forbidden, policy.PathRule{Pattern: pattern, Place: diag.Place(w.expr.Range())})
		}
		rules.Sensitive = d.sensitive(b, workspace)
	}
	return rules
}

var domainName = lazyregexp.New(`^([a-z0-9_]([a-z0-9_-]{0,62})\.)*[a-z0-9]([a-z0-9-]{0,62})$`)

// urlRules reads the policy for addresses.
func (d *decoder) urlRules(blocks []urlsBlock) policy.URLs {
	var rules policy.URLs
	for _, b := range blocks {
		rules.Place = diag.Place(b.Range)
		for _, w := range d.words(b.AllowDomains, `a list of domains such as ["example.org"]`) {
			domain := strings.ToLower(strings.TrimSuffix(w.text, "."))
			if !domainName().MatchString(domain) {
				d.mistake(w.expr.Range(), "Not a domain", "Expected a host such as \"example.org\", without scheme, port or path, not %s. It also covers its subdomains.", quote(w.expr, w.text))
				continue
			}
			rules.AllowDomains = d.addTo(rules.AllowDomains, domain, w)
		}
	}
	return rules
}

// builtInList means the built-in list of sensitive files.
const builtInList = "default"

// sensitive reads the patterns of sensitive files and their verdict.
func (d *decoder) sensitive(b pathsBlock, workspace string) policy.Sensitive {
	var s policy.Sensitive
	if verdict, ok := d.verdict(b.SensitiveVerdict); ok {
		s.Verdict, s.Place = verdict, diag.Place(b.SensitiveVerdict.NameRange)
	}
	if d.absent(b.Sensitive) {
		return s
	}
	s.Patterns, s.Place = []string{}, diag.Place(b.Sensitive.NameRange)
	for _, w := range d.words(b.Sensitive, `a list of patterns such as ["default", "**/*.tfvars", "!**/test.pem"]`) {
		if w.text == builtInList {
			s.Patterns = append(s.Patterns, sensitive.Default()...)
			continue
		}
		if suggestion := diag.DidYouMean(w.text, []string{builtInList}); suggestion != "" {
			d.mistake(w.expr.Range(), "Unknown word", "Expected %q for the built-in list, or a pattern, not %s.%s For a file of this name, write %q.",
				builtInList, quote(w.expr, w.text), suggestion, "./"+w.text)
			continue
		}
		pattern, takeBack := strings.CutPrefix(w.text, "!")
		if takeBack && len(s.Patterns) == 0 {
			d.mistake(w.expr.Range(), "Nothing to take back", "No pattern comes before %s. To keep the built-in list, begin with %q.", quote(w.expr, w.text), builtInList)
			continue
		}
		if pattern == "~" || strings.HasPrefix(pattern, "~/") {
			d.mistake(w.expr.Range(), "Relative pattern", "~ has no meaning in a pattern: this one is relative to the workspace. For the home directory, use pathexpand.")
			continue
		}
		if d.notExpanded(word{pattern, w.expr}) {
			continue
		}
		d.warnPattern("sensitive", w, workspace)
		if pattern != "" && forbidden.Relative(pattern) {
			pattern = policy.InWorkspace + pattern
		}
		if takeBack {
			pattern = "!" + pattern
		}
		if err := policy.CheckSensitive(pattern); err != nil {
			d.mistake(w.expr.Range(), "Not a pattern", "%s cannot be used: %v.", quote(w.expr, w.text), err)
			continue
		}
		if slices.Contains(s.Patterns, pattern) {
			d.mistake(w.expr.Range(), "Duplicate entry", "%s is already in the list.", quote(w.expr, w.text))
			continue
		}
		s.Patterns = append(s.Patterns, pattern)
	}
	return s
}
