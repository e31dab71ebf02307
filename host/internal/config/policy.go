package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// defaultActionsPerHour bounds the calls of one caller.
const defaultActionsPerHour = 600

// maxCalls bounds a rate. A higher one is a mistake.
const maxCalls = 1_000_000

// policy reads the policy blocks, each of which is a part of the policy.
func (d *decoder) policy(blocks []policyBlock, workspace string) (opts policy.Options, actionsPerHour int) {
	actionsPerHour = defaultActionsPerHour
	var all policyBlock
	for _, block := range blocks {
		all.Commands, all.Paths = append(all.Commands, block.Commands...), append(all.Paths, block.Paths...)
		all.URLs, all.Rules = append(all.URLs, block.URLs...), append(all.Rules, block.Rules...)
		if word, ok := d.choice(block.Mode, policy.Supervised.String(), policy.ReadOnly.String(), policy.Autonomous.String()); ok {
			mode, err := policy.ParseMode(word)
			if err == nil {
				opts.Mode, opts.ModePlace = mode, diag.Place(block.Mode.NameRange)
			}
		}
		if d.is(block.ActionsPerHour, unlimited) {
			actionsPerHour = 0
		} else if n, ok := d.actions(block.ActionsPerHour); ok {
			actionsPerHour = n
		}
	}
	opts.Commands = d.commands(all.Commands, workspace)
	opts.Paths = d.pathRules(all.Paths, workspace)
	opts.URLs = d.urlRules(all.URLs)
	if opts.Rules = d.rules(all.Rules); len(opts.Rules) > 0 {
		opts.Locals = d.localsDigest()
	}
	return opts, actionsPerHour
}

func (d *decoder) actions(attr *hcl.Attribute) (int, bool) {
	const expected = `a whole number or "unlimited"`
	n, ok := d.count(attr, 1, expected)
	if ok && n > maxCalls {
		d.mistake(attr.Expr.Range(), "Wrong number", "Expected %s for %s, at most %d.", expected, attr.Name, maxCalls)
		return 0, false
	}
	return int(n), ok
}

// levels reads the approvals of one plugin and its tools.
func (d *decoder) levels(block pluginBlock, ceiling tool.Tier) policy.Plugin {
	levels := policy.Plugin{Tiers: make(map[tool.Tier]policy.Level), Tools: make(map[string]policy.Level)}
	for _, b := range block.Approval {
		for tier, attr := range map[tool.Tier]*hcl.Attribute{
			tool.ReadOnly: b.ReadOnly, tool.SideEffecting: b.SideEffecting, tool.Privileged: b.Privileged,
		} {
			verdict, ok := d.verdict(attr)
			if attr != nil && ceiling != 0 && tier > ceiling {
				d.mistake(attr.NameRange, "Tier above the ceiling",
					"The plugin's tier is %q, so none of its calls has this tier. Raise the plugin's tier, or remove this line.", ceiling)
			}
			if ok {
				levels.Tiers[tier] = policy.Level{Verdict: verdict, Place: diag.Place(attr.NameRange)}
			}
		}
		confirmed := slices.DeleteFunc(slices.Collect(maps.Keys(levels.Tiers)), func(t tool.Tier) bool { return levels.Tiers[t].Verdict != policy.Confirm })
		approvers := d.approvers(b.Approvers, len(confirmed) > 0)
		for _, tier := range confirmed {
			level := levels.Tiers[tier]
			level.Approvers = approvers
			levels.Tiers[tier] = level
		}
	}
	for _, t := range block.Tools {
		if level, ok := d.toolLevel(t); ok {
			levels.Tools[t.Name] = level
		}
	}
	return levels
}

// toolLevel reads the approval of a tool block. It returns false if there is none.
func (d *decoder) toolLevel(block toolBlock) (policy.Level, bool) {
	verdict, ok := d.verdict(block.Approval)
	standing := d.flag(block.AllowStanding, false)
	if block.AllowStanding != nil && verdict != policy.Confirm && (ok || block.Approval == nil) {
		d.mistake(block.AllowStanding.NameRange, "Useless allow_standing",
			`It lets a grant answer approval = %q, which this tool does not have. Write both, or remove it: grants answer %q anyway.`,
			policy.Confirm, policy.Ask)
	}
	approvers := d.approvers(block.Approvers, ok && verdict == policy.Confirm)
	if approvers > 1 && standing {
		d.mistake(block.AllowStanding.NameRange, "Useless allow_standing", "One person gives a grant, so no grant answers for %d. Remove it, or approvers.", approvers)
	}
	if !ok {
		return policy.Level{}, false
	}
	return policy.Level{Verdict: verdict, AllowStanding: standing, Approvers: approvers, Place: diag.Place(block.Approval.NameRange)}, true
}

// approvers reads how many people must approve a call; 0 means one. confirms reports whether what it
// belongs to confirms calls: the mode and grants could answer for a person otherwise.
func (d *decoder) approvers(attr *hcl.Attribute, confirms bool) int {
	if d.absent(attr) {
		return 0
	}
	expected := fmt.Sprintf("a number of people from 1 to %d", policy.MaxApprovers)
	n, ok := d.count(attr, 1, expected)
	switch {
	case !ok:
		return 0
	case n > policy.MaxApprovers:
		d.mistake(attr.Expr.Range(), "Out of range", "Expected %s for approvers.", expected)
		return 0
	case !confirms:
		d.mistake(attr.NameRange, "Useless approvers", "Several people decide only where the verdict is %q, which is not so here. Write it, or remove approvers.", policy.Confirm)
	}
	return int(n)
}

// verdict reads a verdict.
func (d *decoder) verdict(attr *hcl.Attribute) (policy.Verdict, bool) {
	words := []string{policy.Allow.String(), policy.Ask.String(), policy.Confirm.String(), policy.Deny.String()}
	s, ok := d.text(attr, diag.Words(words))
	if !ok {
		return 0, false
	}
	v, err := policy.ParseVerdict(s)
	if err != nil {
		d.mistake(attr.Expr.Range(), "Unknown verdict", "Expected %s for %s, not %s.%s", diag.Words(words), attr.Name, quote(attr.Expr, s), diag.DidYouMean(s, words))
		return 0, false
	}
	return v, true
}

var ratePattern = lazyregexp.New(`^([0-9]{1,9})/([smh])$`)

// rate reads the rate limit of a tool.
func (d *decoder) rate(attr *hcl.Attribute) catalog.Rate {
	const expected = `a number of calls per second, minute or hour such as "2/s", "30/m" or "100/h"`
	s, ok := d.text(attr, expected)
	if !ok {
		return catalog.Rate{}
	}
	parts := ratePattern().FindStringSubmatch(s)
	if parts == nil {
		d.mistake(attr.Expr.Range(), "Not a rate", "Expected %s, not %s.", expected, quote(attr.Expr, s))
		return catalog.Rate{}
	}
	calls, err := strconv.Atoi(parts[1])
	if err != nil || calls < 1 || calls > maxCalls {
		d.mistake(attr.Expr.Range(), "Wrong number", "Expected from 1 to %d calls. To forbid a tool, write approval = %q or enabled = false.", maxCalls, policy.Deny)
		return catalog.Rate{}
	}
	per := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}
	return catalog.Rate{Calls: calls, Per: per[parts[2]]}
}

// localsDigest returns a digest of the values of the locals, which may be secret.
func (d *decoder) localsDigest() string {
	local := d.ctx.Variables["local"]
	text, err := ctyjson.Marshal(local, local.Type())
	if err != nil { // a value is unknown: it has a mistake
		return ""
	}
	return digest.Of(text)
}
