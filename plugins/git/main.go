// Command git is a plugin that lets an agent work with the git repositories in the
// workspace. It is safe with hostile repositories, which cannot make git run programs.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The timeouts of calls. networkTimeout is longer than maxPatience, so that a call can
// report a remote that does not answer.
const (
	localTimeout   = 2 * time.Minute
	networkTimeout = 31 * time.Minute
)

func main() {
	// Git writes files into a worktree that other users may read. The umask of the
	// sandbox would take the files of a branch away from them.
	syscall.Umask(0o022)
	// A call makes more garbage than the plugin keeps. The host limits both.
	debug.SetGCPercent(400)
	newPlugin(layers{}).Serve()
}

// layers turns off one of the two layers that keep a repository from running programs,
// to test the other one.
type layers struct {
	noRules     bool // git may execute anything
	noOverrides bool // git follows the repository's configuration
}

// newPlugin returns the plugin with all its tools.
func newPlugin(l layers) *sdk.Plugin {
	p := sdk.New("git", "1.0.0")
	g := &git{layers: l, configs: newConfigCache()}
	sdk.Configure(p, func(ctx context.Context, c sdk.Config, s settings) error {
		if err := g.configure(ctx, c, s); err != nil {
			return err
		}
		addRemote(p, g, !c.NoNetwork || slices.Contains(s.Protocols, "file"))
		return nil
	})
	add(p, g, status, tool.Spec{Name: "git_status", Core: true, MaxOutput: 64 * tool.KiB})
	add(p, g, diff, tool.Spec{Name: "git_diff", Core: true, MaxOutput: 64 * tool.KiB})
	add(p, g, log, tool.Spec{Name: "git_log", SearchHint: "history", MaxOutput: 64 * tool.KiB})
	add(p, g, show, tool.Spec{Name: "git_show", MaxOutput: 64 * tool.KiB})
	add(p, g, blame, tool.Spec{Name: "git_blame", SearchHint: "author of a line", MaxOutput: 64 * tool.KiB})
	addChange(p, g, planInit, tool.Spec{Name: "git_init", SearchHint: "new repository", Tier: tool.SideEffecting})
	addChange(p, g, planAdd, tool.Spec{Name: "git_add", Tier: tool.SideEffecting, Idempotent: true})
	addChange(p, g, planCommit, tool.Spec{Name: "git_commit", Tier: tool.SideEffecting})
	addChange(p, g, planBranch, tool.Spec{
		Name: "git_branch", Tier: tool.ReadOnly, MaxOutput: 64 * tool.KiB,
		TierWhen: []tool.TierRule{when("create", true, tool.SideEffecting)},
	})
	addChange(p, g, planSwitch, tool.Spec{Name: "git_switch", Tier: tool.SideEffecting})
	abort := []tool.TierRule{when("abort", true, tool.Privileged)} // discards what was resolved
	addChange(p, g, planMerge, tool.Spec{Name: "git_merge", SearchHint: "join branches, conflicts", Tier: tool.SideEffecting, TierWhen: abort})
	addChange(p, g, planPick, tool.Spec{Name: "git_cherry_pick", SearchHint: "copy commits, backport", Tier: tool.SideEffecting, TierWhen: abort})
	addChange(p, g, planRevert, tool.Spec{Name: "git_revert", SearchHint: "undo commits", Tier: tool.SideEffecting, TierWhen: abort})
	addChange(p, g, planRebase, tool.Spec{Name: "git_rebase", SearchHint: "replay commits", Tier: tool.SideEffecting, TierWhen: abort})
	addChange(p, g, planTag, tool.Spec{
		Name: "git_tag", Tier: tool.ReadOnly, SearchHint: "releases, versions", MaxOutput: 64 * tool.KiB,
		TierWhen: []tool.TierRule{when("action", "create", tool.SideEffecting), when("action", "delete", tool.SideEffecting)},
	})
	addChange(p, g, planStash, tool.Spec{
		Name: "git_stash", Tier: tool.ReadOnly, MaxOutput: 64 * tool.KiB,
		TierWhen: []tool.TierRule{
			when("action", "push", tool.SideEffecting), when("action", "apply", tool.SideEffecting), when("action", "pop", tool.SideEffecting),
			when("action", "drop", tool.Privileged),
		},
	})
	addChange(p, g, planRestore, tool.Spec{Name: "git_restore", Tier: tool.Privileged, Destructive: true})
	addChange(p, g, planReset, tool.Spec{Name: "git_reset", Tier: tool.Privileged, Destructive: true})
	return p
}

// addRemote adds the tools that need remotes. They are not available if the plugin reaches
// none.
func addRemote(p *sdk.Plugin, g *git, reaches bool) {
	unavailable := ""
	if !reaches {
		unavailable = `there is no network in this configuration; the administrator adds network { mode = "proxy" } to the sandbox block of the git plugin`
	}
	addChange(p, g, planClone, tool.Spec{Name: "git_clone", SearchHint: "download a repository", Tier: tool.SideEffecting, OpenWorld: true, Timeout: networkTimeout, Unavailable: unavailable})
	addChange(p, g, planFetch, tool.Spec{Name: "git_fetch", Tier: tool.SideEffecting, OpenWorld: true, Idempotent: true, Timeout: networkTimeout, Unavailable: unavailable})
	addChange(p, g, planPull, tool.Spec{Name: "git_pull", Tier: tool.SideEffecting, OpenWorld: true, Timeout: networkTimeout, Unavailable: unavailable})
	addChange(p, g, planPush, tool.Spec{Name: "git_push", Tier: tool.Privileged, OpenWorld: true, Destructive: true, Timeout: networkTimeout, Unavailable: unavailable})
}

// add adds a read-only tool. Its description is in descriptions/NAME.md.
func add[In, Out any](p *sdk.Plugin, g *git, run func(context.Context, *access, In) (Out, error), spec tool.Spec) {
	spec.Category = "git"
	spec.Tier = tool.ReadOnly
	spec.Idempotent = true
	spec.Timeout = localTimeout
	spec.Description = sdk.Description(descriptions, spec.Name)
	sdk.AddTool(p, spec, func(ctx context.Context, c *sdk.Call, in In) (Out, error) {
		return run(ctx, g.access(c), in)
	})
}

// when returns a rule that gives a call the tier if its argument has the value.
func when(property string, value any, tier tool.Tier) tool.TierRule {
	text, err := json.Marshal(value)
	if err != nil {
		return tool.TierRule{} // value is a constant; the sdk rejects a rule without a property
	}
	return tool.TierRule{Property: property, Equals: text, Tier: tier}
}

//go:embed descriptions
var descriptions embed.FS

// git is the state that all tools share.
type git struct {
	layers
	settings atomic.Pointer[settings]
	scratch  string // for temporary files
	configs  *configCache
	loaders  sync.Map // program path to its dynamic loader, which does not change
}

// access is the context of one call.
type access struct {
	*git
	call     *sdk.Call
	proxy    *url.URL // of the host, with the authority of the call; nil if there is none
	settings settings
	// budget is the maximum size of a result in bytes.
	budget int
}

func (g *git) access(c *sdk.Call) *access {
	s := &access{git: g, call: c, proxy: c.Proxy(), budget: int(c.MaxOutput())}
	if set := g.settings.Load(); set != nil {
		s.settings = *set
	}
	s.settings.complete()
	if s.budget <= 0 {
		s.budget = int(defaultBudget)
	}
	return s
}

// defaultBudget is the maximum size of a result if the host sets none.
const defaultBudget = 16 * tool.KiB
