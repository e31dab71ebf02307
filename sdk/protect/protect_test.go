package protect_test

import (
	"slices"
	"testing"

	"github.com/toolhost/toolhost/sdk/protect"
)

func TestCovers(t *testing.T) {
	git, hooks, all := []string{protect.Git}, []string{protect.Hooks}, protect.Presets()
	for _, tt := range []struct {
		presets []string
		path    string
		want    bool
	}{
		{git, ".git/config", true},
		{git, ".git/config.worktree", true},
		{git, ".git/info/attributes", true},
		{git, ".git/hooks/pre-commit", true},
		{git, ".git/commondir", true},
		{git, "a/b/.git/config", true},
		{git, ".git", true},
		{git, "sub/.git", true},
		{git, ".git/modules/sub/config", true},
		{git, ".git/modules/a/b/modules/c/hooks/x", true},
		{git, ".git/modules", true},
		{git, ".git/worktrees/w/config.worktree", true},
		{git, ".GIT/Config", true},
		{git, ".git./config", true},
		{git, ".git /config.", true},
		{git, "GIT~1/config", true},
		{git, ".g\u200dit/config", true},
		{git, "\uff0egit/config", true},
		{git, ".git/index", false},
		{git, ".git/refs/heads/config", false},
		{git, ".git/objects/info/alternates", false},
		{git, "config", false},
		{git, "git/config", false},
		{git, ".gitignore", false},
		{git, ".vscode/tasks.json", false},
		{nil, ".git/config", false},
		{hooks, ".git/hooks/pre-commit", true},
		{hooks, ".git/modules/s/hooks", true},
		{hooks, ".git/config", false},
		{hooks, ".husky/pre-commit", true},
		{hooks, ".pre-commit-config.yaml", true},
		{all, ".envrc", true},
		{all, "deep/down/.envrc", true},
		{all, ".vscode/tasks.json", true},
		{all, ".VSCode", true},
		{all, ".idea/x", true},
		{all, ".claude/settings.json", true},
		{all, ".mcp.json", true},
		{all, ".mcp.json.", true},
		{all, ".cursor/mcp.json", true},
		{all, ".codex", true},
		{all, "src/main.go", false},
		{all, ".", false},
		{all, "", false},
		{all, ".envrc.example", false},
	} {
		if got := protect.Covers(tt.presets, tt.path); got != tt.want {
			t.Errorf("Covers(%q, %q) = %t, want %t", tt.presets, tt.path, got, tt.want)
		}
	}
}

// Every preset selects some names.
func TestPresets(t *testing.T) {
	for _, preset := range protect.Presets() {
		if len(slices.Concat(protect.Names([]string{preset}), protect.GitNames([]string{preset}))) == 0 {
			t.Errorf("%s stands for nothing", preset)
		}
	}
}
