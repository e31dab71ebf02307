package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/tool"
)

// config is what a repository's own configuration says, with what it includes.
type config struct {
	settings  []porcelain.Setting
	overrides []string // names and values in turn, see overridesOf
}

// last is the value that counts of a setting, "" if there is none.
func (c *config) last(section, subsection, name string) string {
	all := c.all(section, subsection, name)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// all are the values of a setting.
func (c *config) all(section, subsection, name string) []string {
	var values []string
	for _, s := range c.settings {
		if s.Section == section && s.Subsection == subsection && s.Name == name {
			values = append(values, s.Value)
		}
	}
	return values
}

// subsections are the names of a section's subsections.
func (c *config) subsections(section string) []string {
	names := map[string]bool{}
	for _, s := range c.settings {
		if s.Section == section && s.Subsection != "" {
			names[s.Subsection] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// maxConfig bounds a repository's configuration.
const maxConfig = tool.MiB

// readConfig asks git for the repository's configuration, which executes nothing of
// it, unless its files are the same as when it was asked last.
func (r *repository) readConfig(ctx context.Context) error {
	now := r.configState()
	if r.config = r.configs.find(r.gitDir, now); r.config != nil {
		return nil
	}
	c := &config{}
	included := false
	records := porcelain.NewRecords(func(record []byte) error {
		s, ok := porcelain.ParseConfig(string(record))
		if !ok {
			return fmt.Errorf("an unknown setting: %.80q", record)
		}
		included = included || s.Section == "include" || s.Section == "includeif"
		c.settings = append(c.settings, s)
		return nil
	})
	r.config = &config{} // git is run without it
	_, err := r.run(ctx, command{args: []string{"config", "--includes", "--list", "-z"}, output: records, maxOutput: maxConfig})
	if err != nil {
		return err
	}
	if err := records.Close(); err != nil {
		return badRepository("its configuration cannot be read").WithCause(err)
	}
	if c.overrides, err = overridesOf(c.settings); err != nil {
		return err
	}
	r.config = c
	// What is included may change with the branch, and where nobody looks here.
	if !included {
		r.configs.keep(r.gitDir, now, c)
	}
	return nil
}

// configState says of the files that hold the configuration whether they have
// changed; "" if that cannot be told.
func (r *repository) configState() string {
	var state strings.Builder
	for _, path := range []string{filepath.Join(r.commonDir, "config"), filepath.Join(r.gitDir, "config.worktree")} {
		info, err := os.Lstat(path)
		if err != nil {
			fmt.Fprintf(&state, "%v;", os.IsNotExist(err))
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || !info.Mode().IsRegular() {
			return ""
		}
		// A file that is changed again within one tick of the kernel's clock looks the
		// same.
		changed := changeTime(stat)
		if time.Since(changed) < 100*time.Millisecond {
			return ""
		}
		fmt.Fprintf(&state, "%d %d %d %d;", stat.Dev, stat.Ino, stat.Size, changed.UnixNano())
	}
	return state.String()
}

// configCache remembers the configuration of a few repositories.
type configCache struct {
	mu    sync.Mutex // guards known
	known map[string]knownConfig
}

type knownConfig struct {
	state  string
	config *config
}

// maxConfigs is how many repositories are remembered.
const maxConfigs = 32

func newConfigCache() *configCache { return &configCache{known: map[string]knownConfig{}} }

func (c *configCache) find(key, state string) *config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[key]; state != "" && known.state == state {
		return known.config
	}
	return nil
}

func (c *configCache) keep(key, state string, found *config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == "" {
		return
	}
	if len(c.known) >= maxConfigs {
		clear(c.known)
	}
	c.known[key] = knownConfig{state, found}
}
