// Package policy decides whether a call is allowed, denied, or needs a person's answer. It does no
// I/O and keeps no state: the same input gives the same decision. So a decision can be explained,
// and repeated before an approved call runs.
package policy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options are the administrator's configuration. The zero value asks about every call that changes
// something.
type Options struct {
	// Mode limits which calls run without asking; 0 means [Supervised].
	Mode Mode `json:"mode"`
	// ModePlace is where the mode is configured, or "".
	ModePlace string `json:"-"`
	// Plugins holds levels by plugin name.
	Plugins map[string]Plugin `json:"plugins,omitempty"`
	// Protected are absolute, clean paths of the host's own files. A call that changes something
	// may not name them, anything below them, or a folder above them.
	Protected []string `json:"protected,omitempty"`
	// Protect holds, by plugin name, the words of package protect for files that the plugin may not
	// change. For other plugins all words apply.
	Protect map[string][]string `json:"protect,omitempty"`
	// Reach holds, by plugin name, absolute, clean paths outside of the workspace that the plugin's
	// sandbox grants.
	Reach map[string][]string `json:"reach,omitempty"`
	// Hidden are absolute, clean paths of the host's state and keys. No call may name them or
	// anything below them.
	Hidden []string `json:"hidden,omitempty"`
	// Rules are the administrator's rules in the order of the configuration. Their names are
	// unique.
	Rules []Rule `json:"rules,omitempty"`
	// Locals identifies the values that conditions use in addition to the call; "" if there are
	// none.
	Locals string `json:"locals,omitempty"`
	// Commands judges arguments that are shell commands; nil judges none.
	Commands *Commands `json:"commands,omitempty"`
	// Paths judges arguments that are paths, and the files in commands.
	Paths Paths `json:"paths"`
	// URLs judges arguments that are addresses.
	URLs URLs `json:"urls"`
}

// Plugin holds the levels that are configured for one plugin.
type Plugin struct {
	// Tiers holds levels by tier.
	Tiers map[tool.Tier]Level `json:"tiers,omitempty"`
	// Tools holds levels by tool name.
	Tools map[string]Level `json:"tools,omitempty"`
	// Builds is the level of commands that build and test what is in the workspace: [Allow], or 0
	// for commands like any other. They execute what the workspace names, so only the plugin's
	// sandbox limits what they do.
	Builds Level `json:"builds,omitzero"`
}

// MaxApprovers bounds the people who must approve one call.
const MaxApprovers = 5

// Level is a configured verdict.
type Level struct {
	// Verdict is 0 if none is configured.
	Verdict Verdict `json:"verdict,omitempty"`
	// AllowStanding lets a grant answer a [Confirm].
	AllowStanding bool `json:"allow_standing,omitempty"`
	// Approvers is how many different people must approve a call that the level confirms; 0 means one.
	Approvers int `json:"approvers,omitempty"`
	// Place is where it is configured, e.g. "config.hcl:12".
	Place string `json:"-"`
}

// Decision is the verdict on a call, and its reasons.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Rule names what decided, e.g. `tool "x"` or "tier privileged".
	Rule string `json:"rule"`
	// Where is its place in the configuration; "" if it is built in.
	Where string `json:"where,omitempty"`
	// Reason is why the call is denied, for a model.
	Reason string `json:"reason,omitempty"`
	// Change is what would change the decision, for a person; "" if nothing in the configuration
	// does.
	Change string `json:"change,omitempty"`
	// By is who allowed the call: "auto" for built-in decisions, "config" for the administrator,
	// "grant" for a grant.
	By By `json:"approved_by,omitempty"`
	// Grants are the ids of the grants that allowed the call.
	Grants []string `json:"grants,omitempty"`
	// Standing reports that a grant would answer calls like this one.
	Standing bool `json:"standing,omitempty"`
	// NoGrant is why no grant would answer, if a person is asked; "" if one would.
	NoGrant string `json:"no_grant,omitempty"`
	// Approvers is how many different people must approve the call if a person is asked; 0 means one.
	Approvers int `json:"approvers,omitempty"`
	// Unanswered are the shell commands that grants have to cover, if Standing is true.
	Unanswered []*command.Segment `json:"-"`
	// Notes are for operators and decide nothing: what shadow rules would do, and conditions that
	// could not be evaluated.
	Notes []string `json:"notes,omitempty"`
}

// By is who approved a call.
type By string

// The values of [By].
const (
	ByAuto   By = "auto"
	ByConfig By = "config"
	ByGrant  By = "grant"
	ByUser   By = "user"
)

// Rules is a policy. It is immutable.
type Rules struct {
	opts     Options
	secrets  secrets
	revision string
	byTool   sync.Map // of the rules about a tool, by its name
	closed   error    // why every call is denied, nil if they are decided
}

// New returns the policy for the options.
func New(opts Options) (*Rules, error) {
	for _, path := range slices.Concat(opts.Protected, opts.Hidden) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return nil, fmt.Errorf("policy: protected path %q: expected an absolute and clean path", path)
		}
	}
	for i := range opts.Rules {
		if err := opts.Rules[i].check(); err != nil {
			return nil, err
		}
	}
	secrets, err := newSecrets(opts.Paths.Sensitive)
	if err != nil {
		return nil, fmt.Errorf("policy: sensitive files: %w", err)
	}
	text, err := json.Marshal(opts)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return &Rules{opts: opts, secrets: secrets, revision: digest.Of(text)}, nil
}

// Revision identifies the policy: policies with the same revision decide alike.
func (r *Rules) Revision() string { return r.revision }

// Protected returns the paths that no call may change. The caller must not
// change the slice.
func (r *Rules) Protected() []string { return r.opts.Protected }

// Reading returns the options for reading the commands of a call.
func (r *Rules) Reading(folders []string) command.Options {
	var opts command.Options
	if len(folders) > 0 {
		opts.Workspace = folders[0]
	}
	if c := r.opts.Commands; c != nil {
		opts.Assign, opts.WriteRedirects = c.Assign, c.WriteRedirects
	}
	return opts
}

// Decide decides a call. Denials are first, then the strictest rule or list that asks, then a
// rule or list that allows, unless the tool's level is [Confirm], and last the level of the tool
// or its tier.
//
// The mode and grants can only soften an [Ask] that no locked rule requires. The mode does not
// soften it for commands of high risk. A grant also answers a [Confirm] where the configuration
// allows it. Nothing softens a [Confirm] for sensitive files.
func (r *Rules) Decide(in Input) Decision {
	o := r.consult(&in)
	approvers := max(o.approvers, r.approvers(&in))
	if approvers > 1 {
		in.Grants = nil // one person gave each
	}
	d := r.unseen(&in, r.decide(&in, &o))
	if approvers > 1 && (d.Verdict == Ask || d.Verdict == Confirm) {
		d.Approvers, d.Standing, d.Unanswered = approvers, false, nil
		d.NoGrant = fmt.Sprintf("%d different people approve each such call", approvers)
	}
	d.Notes = o.notes
	return d
}

// approvers returns how many people the levels of the tool and its tier want to approve a call.
func (r *Rules) approvers(in *Input) int {
	plugin := r.opts.Plugins[in.Plugin]
	if ofTool := plugin.Tools[in.Tool]; ofTool.Verdict != 0 {
		return ofTool.Approvers
	}
	return plugin.Tiers[in.Tier].Approvers
}

// TextAllowed reports whether a shell may read text that no person has approved.
func (r *Rules) TextAllowed() bool { return r.opts.Commands != nil && r.opts.Commands.Text == Allow }

// unseen asks a person about an allowed call if a shell would read a text of it: the shell may read
// the text differently than the rules and lists did.
func (r *Rules) unseen(in *Input, d Decision) Decision {
	text := slices.ContainsFunc(in.Commands, func(c Command) bool { return c.Text })
	if d.Verdict != Allow || !text || r.TextAllowed() {
		return d
	}
	return Decision{
		Verdict: Ask, Rule: "a text that a shell would read", NoGrant: "a shell reads only texts that a person has approved",
		Change: `text = "allow" in the commands block`,
	}
}

func (r *Rules) decide(in *Input, o *outcome) Decision {
	if denied, ok := r.deny(in); ok {
		return denied
	}
	if o.deny != nil {
		return *o.deny
	}
	listed, byList := r.commands(in)
	if byList && listed.Verdict == Deny {
		return listed
	}
	d, level := r.level(*in)
	if d.Verdict == Deny {
		return d
	}
	byRisk := false // what d asks for is a command's risk
	switch asked := o.ask; {
	case asked != nil && (!byList || asked.Verdict >= listed.Verdict):
		d = stricter(d, level, *asked)
	case byList && listed.Verdict != Allow:
		d = stricter(d, level, listed)
		byRisk = level.Verdict != Confirm && asked == nil
	case level.Verdict == Confirm:
	case o.allow != nil:
		d = *o.allow
	case byList:
		d = listed
	}
	if unread(in) { // no list and no rule has seen everything that it runs
		if d.Verdict != Confirm {
			d = Decision{Verdict: Confirm, Rule: "a command that cannot be read as a whole"}
		}
		d.NoGrant = "the command cannot be read as a whole"
	}
	switch sensitive, ok := r.secrets.decide(in); {
	case ok && sensitive.Verdict == Deny:
		return sensitive
	case d.NoGrant != "": // it is confirmed each time
		return d
	case ok && sensitive.Verdict == Confirm:
		sensitive.NoGrant = "calls that name sensitive files are confirmed each time"
		return sensitive
	case ok && d.Verdict < Ask:
		d = sensitive
	}
	if r.opts.Mode == Autonomous && !o.locked && d.Verdict == Ask && !r.highRisk(in) {
		return Decision{Verdict: Allow, Rule: "mode autonomous", Where: r.opts.ModePlace, By: ByConfig}
	}
	switch {
	case d.Verdict != Ask && d.Verdict != Confirm:
		return d
	case o.locked:
		d.NoGrant = "the rule is locked"
	case d.Verdict == Ask || level.AllowStanding || byRisk && r.opts.Commands.AllowStanding:
		if d.Unanswered, d.Standing = r.unanswered(in, !byRisk); !d.Standing {
			d.NoGrant = "what the command does is not said by its words alone"
		}
	case byRisk:
		d.NoGrant = "commands of this risk are confirmed each time; allow_standing = true in the risk block changes that"
	default:
		d.NoGrant = fmt.Sprintf("such calls are confirmed each time; allow_standing = true with approval = \"confirm\" for %s changes that", in.Tool)
	}
	if d.Standing && len(in.Grants) > 0 {
		return Decision{Verdict: Allow, Rule: "grant " + strings.Join(in.Grants, ", "), By: ByGrant, Grants: in.Grants, Standing: true, Change: "toolhost grants revoke " + in.Grants[0]}
	}
	return d
}

// highRisk reports whether a command of the call is of high risk, unless the configuration lets
// such commands run without asking.
func (r *Rules) highRisk(in *Input) bool {
	if c := r.opts.Commands; c != nil && c.level(command.High) == Allow {
		return false
	}
	return slices.ContainsFunc(in.Commands, func(c Command) bool { return c.Line.Risk() == command.High })
}

// unread reports whether a command of the call could not be fully read.
func unread(in *Input) bool {
	return slices.ContainsFunc(in.Commands, func(c Command) bool { return c.Line.Unread })
}

// maxUnanswered limits the commands of one call that grants can answer.
const maxUnanswered = 32

// unanswered returns the commands that grants have to cover: those that the lists do not allow, or
// all of them. It returns false if no grant can cover them: a grant for a tool would cover any
// command.
func (r *Rules) unanswered(in *Input, all bool) ([]*command.Segment, bool) {
	var open []*command.Segment
	for _, c := range in.Commands {
		if c.Script || len(c.Line.Problems) > 0 {
			return nil, false
		}
		for i := range c.Line.Segments {
			s := &c.Line.Segments[i]
			if harmless(s) || !all && r.opts.Commands.segment(s, r.opts.Plugins[in.Plugin].Builds).Verdict == Allow {
				continue
			}
			if open = append(open, s); s.Least == 0 || len(open) > maxUnanswered {
				return nil, false
			}
		}
	}
	return open, len(in.Commands) == 0 || len(open) > 0
}

// stricter returns asked, unless the tool's level confirms each call and asked does not.
func stricter(byLevel Decision, level Level, asked Decision) Decision {
	if level.Verdict == Confirm && asked.Verdict < Confirm {
		return byLevel
	}
	return asked
}

// commands decides about the shell commands of a call; ok is false if no list applies. The
// strictest verdict counts.
func (r *Rules) commands(in *Input) (d Decision, ok bool) {
	for _, c := range in.Commands {
		said, says := r.opts.Commands.judge(c, r.opts.Plugins[in.Plugin].Builds)
		if says && (!ok || said.Verdict > d.Verdict) {
			d, ok = said, true
		}
	}
	if !ok || d.Verdict == Deny {
		return d, ok
	}
	if d.Verdict == Allow && slices.ContainsFunc(in.Commands, func(c Command) bool { return c.Script }) {
		return Decision{}, false // an allowed command may do anything with its input
	}
	// Their words are relative to another place than they were read for.
	lists := r.opts.Commands // without them only denials are known
	for _, named := range in.Paths {
		if verdict := max(Ask, lists.level(command.High)); !in.inside(named.Absolute) && d.Verdict < verdict {
			d = Decision{Verdict: verdict, Rule: "a command outside of the workspace, in " + tool.VisibleName(named.Name), Where: lists.Place}
		}
	}
	return d, true
}

// level returns the level of a call: the tool's, otherwise the one of its tier in its plugin,
// otherwise the tier's.
func (r *Rules) level(in Input) (Decision, Level) {
	plugin := r.opts.Plugins[in.Plugin]
	ofTool, ofTier := plugin.Tools[in.Tool], plugin.Tiers[in.Tier]
	d := Decision{Verdict: tierDefault(in.Tier), Rule: "tier " + in.Tier.String(), By: ByAuto}
	switch {
	case ofTool.Verdict != 0:
		d = Decision{Verdict: ofTool.Verdict, Rule: fmt.Sprintf("tool %q", in.Tool), Where: ofTool.Place, By: ByConfig}
	case ofTier.Verdict != 0:
		d = Decision{
			Verdict: ofTier.Verdict, Rule: fmt.Sprintf("plugin %q, approval of %s calls", in.Plugin, in.Tier),
			Where: ofTier.Place, By: ByConfig,
		}
	}
	if ofTool.Verdict == 0 && d.Verdict == Allow && in.Asks {
		d = Decision{Verdict: Ask, Rule: "the tool's author"}
	}
	d.Change = change(in, d)
	if d.Verdict != Allow {
		d.By = ""
	}
	if d.Verdict == Deny {
		d.Reason = fmt.Sprintf("the configuration denies %s", in.Tool)
	}
	return d, ofTool
}

// tierDefault is the level of a tier without configuration.
func tierDefault(tier tool.Tier) Verdict {
	switch tier {
	case tool.ReadOnly:
		return Allow
	case tool.SideEffecting:
		return Ask
	case tool.Privileged:
	}
	return Confirm
}

// change returns the configuration that would change a decision.
func change(in Input, d Decision) string {
	other := Allow
	if d.Verdict == Allow {
		other = Ask
	}
	return fmt.Sprintf("tool %q { approval = %q } in the block of plugin %q", in.Tool, other, in.Plugin)
}
