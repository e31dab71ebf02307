package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/sdk"
)

// defaultPath is the PATH of servers if the plugin has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment builds the environment of a server from nothing. HOME is kept between starts if the
// plugin has a state directory, so that programs can keep caches there.
func (s *settings) environment(cfg sdk.Config) ([]string, error) {
	home := filepath.Join(cmp.Or(cfg.StateDir, cfg.ScratchDir), "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make a home directory for the server: %w", err)
	}
	env := []string{
		"PATH=" + cmp.Or(os.Getenv("PATH"), defaultPath),
		"HOME=" + home,
		"TMPDIR=" + cfg.ScratchDir,
		"LANG=" + cmp.Or(os.Getenv("LANG"), "C.UTF-8"),
	}
	env = append(env, cfg.ProxyEnv()...)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	return env, nil
}

// directory returns the working directory of the server. The host starts the plugin in the workspace
// if it has access to it, and in the root directory otherwise.
func (s *settings) directory(cfg sdk.Config) string {
	if s.Dir != "" {
		return s.Dir
	}
	if here, err := os.Getwd(); err == nil && here != "/" { //nolint:forbidigo // it is how the host tells the workspace before the first call
		return here
	}
	return cmp.Or(cfg.StateDir, cfg.ScratchDir)
}
