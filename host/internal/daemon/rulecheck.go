package daemon

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/host/internal/policy"
	"github.com/toolhost/toolhost/host/internal/supervisor"
)

// CheckRules holds the rules of a configuration against the tools that are known from
// earlier starts, and runs their tests. It starts nothing.
func CheckRules(cfg *config.Config, version string) (pipeline.RuleCheck, error) {
	rules, err := policy.New(cfg.Policy)
	if err != nil {
		return pipeline.RuleCheck{}, err
	}
	_, toList := enabled(cfg.Plugins)
	tools, err := listing(Options{Config: cfg, Version: version}, toList)
	if err != nil {
		return pipeline.RuleCheck{}, err
	}
	complete := true
	for _, p := range cfg.Plugins {
		if !p.Enabled {
			continue
		}
		digest, specs, known := supervisor.KnownTools(cfg.StateDir, p.Supervisor)
		if complete = complete && known; !known {
			continue
		}
		if err := tools.Publish(p.Supervisor.Name, digest, specs); err != nil {
			return pipeline.RuleCheck{}, err
		}
	}
	return pipeline.CheckRules(cfg.Policy.Rules, tools, pipeline.Settings{Policy: rules, Roots: []string{cfg.Workspace}}, complete), nil
}

// refuseRules returns the mistakes that [CheckRules] finds as an error.
func refuseRules(cfg *config.Config, version string) error {
	if len(cfg.Policy.Rules) == 0 {
		return nil
	}
	check, err := CheckRules(cfg, version)
	if err != nil || len(check.Mistakes) == 0 {
		return err
	}
	var lines []string
	for _, m := range check.Mistakes {
		lines = append(lines, fmt.Sprintf("%s: %s", m.Place, m.Text))
	}
	return errors.New(strings.Join(lines, "\n"))
}
