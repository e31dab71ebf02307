package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// shippedBlocks returns the default configuration from its server block on, for a port of the
// system's choice.
func shippedBlocks() (string, error) {
	text, err := os.ReadFile("../config.hcl")
	if err != nil {
		return "", err
	}
	_, blocks, found := strings.Cut(string(text), "\n# Where `toolhost serve` is reached")
	if !found {
		return "", errors.New("config.hcl has no server block")
	}
	return "#" + strings.Replace(blocks, "127.0.0.1:7780", "127.0.0.1:0", 1), nil
}

// unlimited removes the limit of changes per hour.
func unlimited(blocks string) string {
	return regexp.MustCompile(`actions_per_hour = \d+`).ReplaceAllString(blocks, `actions_per_hour = "unlimited"`)
}

// learn makes a directory of what a host saves of each plugin at its first start, which costs
// a quarter of a second of processor time for each.
func learn(dir string) error {
	blocks, err := shippedBlocks()
	if err != nil {
		return err
	}
	first := filepath.Join(dir, "first")
	if err := os.MkdirAll(filepath.Join(first, "ws"), 0o755); err != nil {
		return err
	}
	config := filepath.Join(first, "config.hcl")
	if err := os.WriteFile(config, []byte(settingsFor(blocks+counting)), 0o600); err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(dir, "toolhost"), "tools", "--config", config).CombinedOutput()
	if err != nil {
		return fmt.Errorf("toolhost tools: %w\n%s", err, out)
	}
	return os.CopyFS(filepath.Join(dir, learned), os.DirFS(filepath.Join(first, "state", "manifests")))
}

// learned is the directory that learn makes, below that of the binaries.
const learned = "learned"

// seed makes a state directory of a host that knows the plugins. Tests of a first start, as
// TestReadmeWalkThrough, do without.
func seed(stateDir string) error {
	if err := os.Mkdir(stateDir, 0o700); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(stateDir, "manifests"), os.DirFS(filepath.Join(bin, learned)))
}
