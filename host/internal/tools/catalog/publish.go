package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits of what one plugin may publish.
const (
	maxTools       = 500
	maxAliases     = 16
	maxDescription = 16 * tool.KiB
	maxTitle       = 256
	maxUnavailable = 512
)

// compile judges each tool that a plugin publishes or the configuration names. Schemas of
// known tools are compiled later.
func compile(plugin *Plugin, accepted lock.Lock, digest string, specs []tool.Spec, known bool) publication {
	p := publication{digest: digest, specs: specs, sound: true}
	seen := make(map[string]bool)
	for i, spec := range specs {
		if i == maxTools {
			p.refuse(plugin, spec.Name, fmt.Errorf("the plugin publishes %d tools, more than the %d that are allowed", len(specs), maxTools))
			break
		}
		if seen[spec.Name] {
			p.refuse(plugin, spec.Name, errors.New("the plugin publishes this name twice, and the first one counts"))
			continue
		}
		seen[spec.Name] = true
		entry, err := newEntry(plugin, accepted, digest, spec, known)
		if err != nil {
			refusal := p.refuse(plugin, spec.Name, err)
			p.note(spec.Name, err)
			p.sound = p.sound && (known || refusal.TooHigh || refusal.Unavailable || refusal.Pending)
			continue
		}
		p.entries = append(p.entries, entry)
	}
	for _, opts := range plugin.Tools {
		if _, gone := accepted.Accepted(plugin.Name, opts.Name); !seen[opts.Name] && !gone {
			p.refuseUnknown(plugin, opts.Name)
		}
	}
	p.refuseGone(plugin, accepted, seen)
	p.offer = p.basis()
	return p
}

// refuse adds a refusal and returns it.
func (p *publication) refuse(plugin *Plugin, name string, reason error) *Refusal {
	_, tooHigh := errors.AsType[tooHighError](reason)
	_, unavailable := errors.AsType[unavailableError](reason)
	_, pending := errors.AsType[pendingError](reason)
	p.refusals = append(p.refusals, Refusal{
		Plugin: plugin.Name, Tool: tool.VisibleName(schema.Shorten(name)), Reason: reason.Error(), TooHigh: tooHigh, Unavailable: unavailable, Pending: pending,
	})
	return &p.refusals[len(p.refusals)-1]
}

// refuseUnknown refuses a tool block without a tool.
func (p *publication) refuseUnknown(plugin *Plugin, name string) {
	var names []string
	for _, spec := range p.specs {
		names = append(names, spec.Name)
	}
	text, near := "the configuration has a tool block for it, and the plugin, with its settings, has no tool of this name", ""
	if similar := schema.Nearest(name, names); len(similar) > 0 {
		near = similar[0]
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	refusal := p.refuse(plugin, name, errors.New(text))
	refusal.Unknown, refusal.Near = true, near
}

// newEntry returns a tool's entry, or why there is none.
func newEntry(plugin *Plugin, accepted lock.Lock, digest string, spec tool.Spec, known bool) (*Entry, error) {
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	admin, listed := plugin.options(spec.Name)
	if admin.Disabled {
		return nil, errors.New("disabled in configuration")
	}
	if spec.Unavailable != "" {
		return nil, unavailableError(spec.Unavailable)
	}
	input, output, err := schemas(spec, known)
	if err != nil {
		return nil, err
	}
	tiers, err := effectiveTiers(plugin, admin, listed, spec, input)
	if err != nil {
		return nil, err
	}
	if reason := tooHigh(tiers.base, plugin.Ceiling); reason != "" {
		return nil, tooHighError(reason)
	}
	definition, err := checkDefinition(plugin, accepted, spec) // last: only what would be offered is pending
	if err != nil {
		return nil, err
	}
	spec.CommandTree = spec.CommandTree && (plugin.TrustClaims || listed)
	if spec.Title == "" {
		spec.Title = spec.Name
	}
	return &Entry{
		Plugin:       plugin.Name,
		Digest:       digest,
		Definition:   definition,
		Spec:         spec,
		Tier:         tiers.base,
		Timeout:      cmp.Or(admin.Timeout, min(spec.Timeout, maxTimeout), DefaultTimeout),
		MaxOutput:    cmp.Or(admin.MaxOutput, min(spec.MaxOutput, maxMaxOutput), DefaultMaxOutput),
		Rate:         admin.Rate,
		CacheTTL:     cacheTTL(spec, admin),
		OwnProcesses: plugin.OwnProcesses,
		SplitTiers:   plugin.SplitTiers,
		Aliases:      aliases(spec, admin),
		Schema:       input,
		Output:       output,
		tiers:        tiers,
		ceiling:      plugin.Ceiling,
	}, nil
}

// schemas returns the schemas of a tool's arguments and of its structured results. Those of a known
// tool are compiled when they are used first.
func schemas(spec tool.Spec, known bool) (*schema.Schema, *schema.Output, error) {
	compile, compileOutput := schema.Compile, schema.CompileOutput
	switch {
	case known && spec.Foreign:
		compile, compileOutput = schema.KnownForeign, schema.KnownOutput
	case spec.Foreign:
		compile = schema.CompileForeign
	case known:
		compile, compileOutput = schema.Known, schema.KnownOutput
	}
	input, err := compile(spec.InputSchema)
	if err != nil {
		return nil, nil, err
	}
	output, err := compileOutput(spec.OutputSchema)
	return input, output, err
}

// unavailableError is a plugin's reason not to offer a tool in this configuration.
type unavailableError string

func (e unavailableError) Error() string { return string(e) }

// cacheTTL is how long results of a tool may be reused.
func cacheTTL(spec tool.Spec, admin ToolOptions) time.Duration {
	if !spec.Cacheable {
		return 0
	}
	return max(0, cmp.Or(admin.CacheTTL, DefaultCacheTTL))
}

// effectiveTiers applies the rule about claims. A plugin's claim counts if the configuration lists
// the tool or trusts the plugin; otherwise no call has a tier below the ceiling, except that the
// claim read_only counts if the kernel enforces it. A claim above the ceiling is never lowered,
// because the tool would do more than it may.
func effectiveTiers(plugin *Plugin, admin ToolOptions, listed bool, spec tool.Spec, input *schema.Schema) (tiers, error) {
	if spec.Tier < tool.ReadOnly || spec.Tier > tool.Privileged {
		return tiers{}, errors.New("it states no tier")
	}
	claim, err := compileTiers(spec.TierWhen, spec.Tier, 0, input.Names())
	if err != nil {
		return tiers{}, err
	}
	if reason := tooHigh(spec.Tier, plugin.Ceiling); reason != "" && admin.Tier == 0 {
		return tiers{}, tooHighError(reason)
	}
	switch {
	case admin.Tier != 0:
		return tiers{base: admin.Tier, floor: admin.Tier, rules: claim.rules}, nil
	case listed || plugin.TrustClaims:
		return claim, nil
	case plugin.SplitTiers:
		return claim.raised(plugin.Ceiling), nil
	}
	return tiers{base: plugin.Ceiling, floor: plugin.Ceiling, rules: claim.rules}, nil
}

// checkSpec checks everything about a tool except its schemas and its tier.
func checkSpec(spec tool.Spec) error {
	switch {
	case !tool.ValidName(spec.Name):
		return errors.New("its name must be a lower-case letter, then up to 63 lower-case letters, digits and underscores")
	case strings.TrimSpace(spec.Description) == "":
		return errors.New("it has no description")
	case len(spec.Description) > int(maxDescription):
		return fmt.Errorf("its description has %d bytes, more than the %s that are allowed", len(spec.Description), maxDescription)
	case len(spec.Title) > maxTitle || len(spec.Category) > maxTitle:
		return fmt.Errorf("its title and category may have %d bytes each", maxTitle)
	case len(spec.SearchHint) > maxTitle:
		return fmt.Errorf("its search hint may have %d bytes", maxTitle)
	case len(spec.Unavailable) > maxUnavailable || !oneLine(spec.Unavailable):
		return fmt.Errorf("the reason why it is unavailable may have %d bytes of visible characters, in one line", maxUnavailable)
	case len(spec.Aliases) > maxAliases:
		return fmt.Errorf("it has %d aliases, more than the %d that are allowed", len(spec.Aliases), maxAliases)
	case tool.Visible(spec.Description) != spec.Description:
		return errors.New("its description has control characters other than line breaks and tabs, or invisible characters")
	case !oneLine(spec.Title) || !oneLine(spec.Category):
		return errors.New("its title or category has control or invisible characters")
	case !oneLine(spec.SearchHint):
		return errors.New("its search hint has control or invisible characters")
	case spec.Timeout < 0 || spec.MaxOutput < 0 || spec.MaxConcurrency < 0:
		return errors.New("its time-out, output size and concurrency must not be negative")
	}
	for _, alias := range spec.Aliases {
		if !tool.ValidAlias(alias) {
			return fmt.Errorf("its alias %q is not a valid tool name", schema.Shorten(alias))
		}
	}
	return nil
}

// oneLine reports whether text has one line and no invisible characters.
func oneLine(text string) bool {
	return tool.Visible(text) == text && !strings.ContainsAny(text, "\n\t")
}

// options returns the configuration of a tool, and whether it has one.
func (p *Plugin) options(name string) (ToolOptions, bool) {
	i := slices.IndexFunc(p.Tools, func(o ToolOptions) bool { return o.Name == name })
	if i < 0 {
		return ToolOptions{}, false
	}
	return p.Tools[i], true
}

// aliases returns the tool's other names, those of the configuration first.
func aliases(spec tool.Spec, admin ToolOptions) []string {
	var names []string
	for _, alias := range slices.Concat(admin.Aliases, spec.Aliases) {
		if alias != spec.Name && !slices.Contains(names, alias) {
			names = append(names, alias)
		}
	}
	return names
}
