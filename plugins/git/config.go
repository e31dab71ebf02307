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

// config is a repository's configuration, including the files that it includes.
type config struct {
	settings  []porcelain.Setting
	overrides []string // names and values in turn; see overridesOf
}

// last returns the effective value of a setting, the last one, or "" if it is not set.
func (c *config) last(section, subsection, name string) string {
	all := c.all(section, subsection, name)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// all returns the values of a setting in order.
func (c *config) all(section, subsection, name string) []string {
	var values []string
	for _, s := range c.settings {
		if s.Section == section && s.Subsection == subsection && s.Name == name {
			values = append(values, s.Value)
		}
	}
	return values
}

// subsections returns the sorted names of a section's subsections.
func (c *config) subsections(section string) []string {
	names := map[string]bool{}
	for _, s := range c.settings {
		if s.Section == section && s.Subsection != "" {
			names[s.Subsection] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// maxConfig limits the size of a repository's configuration.
const maxConfig = tool.MiB

// readConfig reads the repository's configuration with git, which executes nothing in
// it. If the files have not changed since the last call, it uses the cached result.
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
			return fmt.Errorf("unknown setting: %.80q", record)
		}
		included = included || s.Section == "include" || s.Section == "includeif"
		c.settings = append(c.settings, s)
		return nil
	})
	r.config = &config{} // there are no overrides yet
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
	// An include can depend on the branch and on files that configState does not check.
	if !included {
		r.configs.keep(r.gitDir, now, c)
	}
	return nil
}

// configState returns a text that changes whenever the files of the configuration
// change, or "" if later changes could go unnoticed.
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
		// A second change within one tick of the kernel's clock would go unnoticed.
		changed := changeTime(stat)
		if time.Since(changed) < 100*time.Millisecond {
			return ""
		}
		fmt.Fprintf(&state, "%d %d %d %d;", stat.Dev, stat.Ino, stat.Size, changed.UnixNano())
	}
	return state.String()
}

// configCache caches the configurations of a few repositories.
type configCache struct {
	mu    sync.Mutex // guards known
	known map[string]knownConfig
}

type knownConfig struct {
	state  string
	config *config
}

// maxConfigs is the number of cached repositories.
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
