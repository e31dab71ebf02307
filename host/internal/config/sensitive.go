package config

import (
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/sensitive"
)

// builtInList stands for the built-in list of sensitive files.
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
		patterns := []string{pattern}
		if pattern != "" && !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "**/") {
			patterns = nil // for the workspace as written, and with symbolic links resolved
			for _, folder := range spellings(workspace) {
				patterns = append(patterns, path.Join(policy.Literal(folder), pattern))
			}
		}
		for i := range patterns {
			if takeBack {
				patterns[i] = "!" + patterns[i]
			}
		}
		if _, err := sensitive.Parse(patterns); err != nil {
			d.mistake(w.expr.Range(), "Not a pattern", "%s cannot be used: %v.", quote(w.expr, w.text), err)
			continue
		}
		if slices.Contains(s.Patterns, patterns[0]) {
			d.mistake(w.expr.Range(), "Duplicate entry", "%s is already in the list.", quote(w.expr, w.text))
			continue
		}
		s.Patterns = append(s.Patterns, patterns...)
	}
	return s
}
