package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hclBlock finds the configurations in a page.
var hclBlock = regexp.MustCompile("(?s)```hcl\n(.*?)```")

// TestConfigurationsInDocsAreValid loads what the pages tell people to write.
func TestConfigurationsInDocsAreValid(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range hclBlock.FindAllStringSubmatch(string(text), -1) {
			found++
			dir := t.TempDir()
			config := block[1]
			if !strings.Contains(config, "workspace ") { // a part of a file
				config = "workspace = \"ws\"\n" + config
			}
			for place, here := range map[string]string{
				`(?m)^workspace +=.*$`:  `workspace = "ws"`,
				`(?m)^state_dir +=.*$`:  `state_dir = "state"`,
				`(?m)^plugin_dir +=.*$`: `plugin_dir = "` + filepath.Join(bin, "plugins") + `"`,
				`"/opt/plugins/[a-z]+"`: `"` + filepath.Join(bin, "plugins", "hello") + `"`,
			} {
				config = regexp.MustCompile(place).ReplaceAllString(config, here)
			}
			path := filepath.Join(dir, "config.hcl")
			if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "ws"), 0o700); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			cmd := toolhost(t.Context(), path, "validate")
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Run(); err != nil {
				t.Errorf("%s tells people to write\n%s\ntoolhost validate says\n%s", page, block[1], &said)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d configurations found, want those of README, configuration and plugins", found)
	}
}
