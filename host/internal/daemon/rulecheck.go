package daemon

import (
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
)

// CheckRules checks the names and rules of a configuration against the tools that are known
// from earlier starts, and runs the tests of the rules. It starts nothing.
func CheckRules(cfg *config.Config, version string) (pipeline.RuleCheck, error) {
	rules, err := policy.New(cfg.Policy)
	if err != nil {
		return pipeline.RuleCheck{}, err
	}
	tools, err := knownTools(cfg, version)
	if err != nil {
		return pipeline.RuleCheck{}, err
	}
	disabled, known := disabledTools(cfg)
	check := pipeline.CheckRules(cfg.Policy.Rules, tools, settings(cfg, rules), disabled, known && complete(cfg, tools))
	check.Mistakes = append(check.Mistakes, wrongNames(cfg, tools)...)
	hide(&check, cfg)
	return check, nil
}

// knownTools lists the tools that are known from earlier starts.
func knownTools(cfg *config.Config, version string) (*catalog.Catalog, error) {
	_, toList := enabled(cfg.Plugins, lock.Lock{})
	accepted, err := lock.File{Path: cfg.Lock, StateDir: cfg.StateDir}.Load()
	if err != nil {
		return nil, err
	}
	tools, err := listing(Options{Config: cfg, Version: version}, toList, accepted.Lock)
	if err != nil {
		return nil, err
	}
	for _, p := range cfg.Plugins {
		if !p.Enabled {
			continue
		}
		if saved, known := supervisor.KnownTools(cfg.StateDir, p.Supervisor); known {
			if err := publish(tools, saved); err != nil {
				return nil, err
			}
		}
	}
	return tools, nil
}

// disabledTools returns the names of the tools of disabled plugins, and whether all of them are
// known from earlier starts. A plugin may be disabled without a change of the rules about it.
func disabledTools(cfg *config.Config) (names []string, known bool) {
	known = true
	for _, p := range cfg.Plugins {
		if p.Enabled {
			continue
		}
		saved, ok := supervisor.KnownTools(cfg.StateDir, p.Supervisor)
		known = known && ok
		for _, t := range saved.Tools {
			names = append(names, t.Name)
		}
	}
	return names, known
}

// complete reports whether a catalog has the tools of all plugins.
func complete(cfg *config.Config, tools *catalog.Catalog) bool {
	bases := tools.Bases()
	return !slices.ContainsFunc(cfg.Plugins, func(p config.Plugin) bool {
		_, known := bases[p.Catalog.Name]
		return p.Enabled && !known
	})
}

// hide removes the values of env() and file() from a result: the arguments of a test may hold
// them, and mistakes quote arguments.
func hide(check *pipeline.RuleCheck, cfg *config.Config) {
	for i := range check.Mistakes {
		check.Mistakes[i].Text = cfg.Hide(check.Mistakes[i].Text)
	}
	for i := range check.Tests {
		test := &check.Tests[i]
		test.Problem = cfg.Hide(test.Problem)
		if test.Decision != nil {
			decision := *test.Decision
			decision.Reason, decision.Rule = cfg.Hide(decision.Reason), cfg.Hide(decision.Rule)
			test.Decision = &decision
		}
	}
}

// Mistakes returns the mistakes that [CheckRules] found as an error like that of
// [config.Load], or nil.
func Mistakes(cfg *config.Config, check pipeline.RuleCheck) error {
	var found []config.Found
	for _, m := range check.Mistakes {
		found = append(found, config.Found{Place: m.Place, Word: m.Word, Summary: m.Summary, Detail: m.Text})
	}
	if len(found) == 0 {
		return nil
	}
	return cfg.Mistaken(found)
}

// refuseRules is [refuseMistakes] if there are rules.
func refuseRules(cfg *config.Config, version string) error {
	if len(cfg.Policy.Rules) == 0 {
		return nil // names in tool blocks are checked with the tools of the running host
	}
	return refuseMistakes(cfg, version)
}

// refuseMistakes returns the mistakes that [CheckRules] finds as an error.
func refuseMistakes(cfg *config.Config, version string) error {
	check, err := CheckRules(cfg, version)
	if err != nil {
		return err
	}
	return Mistakes(cfg, check)
}

// ruled checks the rules in force again when the tools of a plugin become known that could not
// be started before.
type ruled struct {
	mu    sync.Mutex // guards the following
	cfg   *config.Config
	wrong []string
}

// begin checks the rules and the names of tools after the plugins were started, and refuses what
// a reload would refuse.
func (r *ruled) begin(opts Options, tools *catalog.Catalog) error {
	err := refuseRules(opts.Config, opts.Version) // and names
	if len(opts.Config.Policy.Rules) == 0 {
		err = refuseNames(opts.Config, tools)
	}
	if err != nil {
		return err
	}
	r.use(opts.Config)
	r.look(opts.Version, opts.Logger)
	return nil
}

// use sets the configuration in force, whose rules were checked.
func (r *ruled) use(cfg *config.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg, r.wrong = cfg, nil
}

// look checks the rules against the tools that are known now, and logs new mistakes.
func (r *ruled) look(version string, logger hclog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cfg == nil || len(r.cfg.Policy.Rules) == 0 {
		return
	}
	check, err := CheckRules(r.cfg, version)
	if err != nil {
		logger.Error("the rules of the policy cannot be checked", "error", err)
		return
	}
	var wrong []string
	for _, m := range check.Mistakes {
		text := fmt.Sprintf("%s: %s", m.Place, m.Text)
		if wrong = append(wrong, text); !slices.Contains(r.wrong, text) {
			logger.Error("a rule of the policy is wrong", "at", m.Place, "mistake", m.Text)
		}
	}
	r.wrong = wrong
}

// problems returns the mistakes in the rules.
func (r *ruled) problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wrong)
}
