package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// commands reads the policy for shell commands.
func (d *decoder) commands(blocks []commandsBlock, workspace string) *policy.Commands {
	var lists *policy.Commands
	for _, b := range blocks {
		lists = &policy.Commands{
			Place: diag.Place(b.Range), Unlisted: policy.Ask, BlockHighRisk: d.flag(b.BlockHighRisk, false),
			Deny: d.commandRules(b.Deny, nil, d.warnDeny), WriteRedirects: []string{"/dev/null"},
		}
		lists.Allow = d.commandRules(b.Allow, lists.Deny, d.warnAllow)
		if word, ok := d.choice(b.Unlisted, policy.Ask.String(), policy.Deny.String()); ok && word == policy.Deny.String() {
			lists.Unlisted = policy.Deny
		}
		if word, ok := d.choice(b.Text, policy.Ask.String(), policy.Allow.String()); ok && word == policy.Allow.String() {
			lists.Text = policy.Allow
		}
		for _, w := range d.words(b.Assign, `a list of variables such as ["LANG", "TZ"]`) {
			if !variableName().MatchString(w.text) {
				d.mistake(w.expr.Range(), "Not a variable", "Expected the name of a variable such as \"LANG\", not %s.", quote(w.expr, w.text))
				continue
			}
			d.warnAssign(w)
			lists.Assign = d.addTo(lists.Assign, w.text, w)
		}
		if b.WriteRedirects != nil {
			lists.WriteRedirects = d.redirects(b.WriteRedirects, workspace)
		}
		for _, risk := range b.Risk {
			lists.Risk = map[command.Risk]policy.Verdict{}
			for level, attr := range map[command.Risk]*hcl.Attribute{command.Low: risk.Low, command.Medium: risk.Medium, command.High: risk.High} {
				if verdict, ok := d.verdict(attr); ok {
					lists.Risk[level] = verdict
				}
			}
			if lists.Risk[command.High] == policy.Allow {
				d.warnRisk(risk.High)
			}
			lists.AllowStanding = d.flag(risk.AllowStanding, false)
			if risk.AllowStanding != nil && !lists.Confirms() {
				d.mistake(risk.AllowStanding.NameRange, "Useless allow_standing",
					"It lets a grant answer a risk with the verdict %q, and no risk has that verdict. Remove it: grants answer %q anyway.", policy.Confirm, policy.Ask)
			}
		}
	}
	return lists
}

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// redirects reads the files that output may be redirected to.
func (d *decoder) redirects(attr *hcl.Attribute, workspace string) []string {
	list := []string{}
	for _, w := range d.words(attr, `a list of files such as ["/dev/null"]`) {
		if w.text == "" || strings.ContainsRune(w.text, 0) || filepath.IsAbs(w.text) && filepath.Clean(w.text) != w.text {
			d.mistake(w.expr.Range(), "Not a file", "Expected a file as commands write it, such as \"/dev/null\", not %s.", quote(w.expr, w.text))
			continue
		}
		d.warnRedirect(w, workspace)
		list = d.addTo(list, w.text, w)
	}
	return list
}

// commandRules reads a list of the words that commands begin with. It reports entries
// that the list denied covers, since they can never decide.
func (d *decoder) commandRules(attr *hcl.Attribute, denied []policy.CommandRule, warn func(word)) []policy.CommandRule {
	var rules []policy.CommandRule
	for _, w := range d.words(attr, `a list of commands such as ["ls", "git status"]`) {
		words := strings.Fields(w.text)
		switch {
		case len(words) == 0:
			d.mistake(w.expr.Range(), "Empty command", "Expected the first words of a command, such as \"git status\".")
			continue
		case strings.ContainsAny(w.text, "'\"\\$`|;&<>()\n\x00"):
			d.mistake(w.expr.Range(), "Not a command", "Expected the first words of one command, such as \"git status\", without quotes, pipes or lists, not %s.", quote(w.expr, w.text))
			continue
		case slices.Contains(words[:len(words)-1], "*") || words[0] == "*":
			d.mistake(w.expr.Range(), "Misplaced *", "* stands for any further words. Write it last, after a program: \"npm run *\".")
			continue
		}
		if i := slices.IndexFunc(denied, func(deny policy.CommandRule) bool {
			return len(words) >= len(deny.Words) && slices.Equal(deny.Words, words[:len(deny.Words)])
		}); i >= 0 {
			d.mistake(w.expr.Range(), "Unreachable entry", "%q at %s denies every command that this entry would allow. Remove one of them.", denied[i], denied[i].Place)
			continue
		}
		if i := slices.IndexFunc(rules, func(r policy.CommandRule) bool { return slices.Equal(r.Words, words) }); i >= 0 {
			d.mistake(w.expr.Range(), "Duplicate entry", "%s is already in the list.", quote(w.expr, w.text))
			continue
		}
		warn(w)
		rules = append(rules, policy.CommandRule{Words: words, Place: diag.Place(w.expr.Range())})
	}
	return rules
}
