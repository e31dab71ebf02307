package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hclBlock matches configurations in a page.
var hclBlock = regexp.MustCompile("(?s)```hcl\n(.*?)```")

// ofReaders matches warnings about paths that readers have and this machine has not, and about
// blocks that other parts of a file use.
var ofReaders = regexp.MustCompile(`(?m)^warning: .* # accept: (missing|unused)\.$`)

// TestConfigurationsInDocsAreValid loads the configurations in the docs. They must not cause
// warnings, either.
func TestConfigurationsInDocsAreValid(t *testing.T) {
	t.Parallel()
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
			if !regexp.MustCompile(`(?m)^workspace +=`).MatchString(config) { // only part of a file
				config = "workspace = \"ws\"\n" + config
			}
			own := strings.Contains(config, "\nworkspace_template")
			for place, here := range map[string]string{
				`(?m)^workspace +=.*$`:          `workspace = "ws"`,
				`(?m)^workspace_template +=.*$`: `workspace_template = "new"`,
				`(?m)^state_dir +=.*$`:          `state_dir = "state"`,
				`(?m)^plugin_dir +=.*$`:         `plugin_dir = "` + filepath.Join(bin, "plugins") + `"`,
				`"/opt/plugins/[a-z]+"`:         `"` + filepath.Join(bin, "plugins", "hello") + `"`,
				`"/usr/bin/pass"`:               `"` + filepath.Join(bin, "plugins", "hello") + `"`,
			} {
				config = regexp.MustCompile(place).ReplaceAllString(config, here)
			}
			if own {
				config = strings.Replace(config, `workspace = "ws"`, `workspace = "ws/${caller.user}"`, 1)
			}
			path := filepath.Join(dir, "config.hcl")
			if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"ws", "new"} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(config, `"tls/cert.pem"`) {
				certificates(t, dir)
			}
			var said bytes.Buffer
			cmd := toolhost(t.Context(), path, "validate", "--no-start")                                                     // a part of a file names tools of other parts
			cmd.Env = append(os.Environ(), "npm_config_registry=https://npm.example.com/", "GOPROXY=https://go.example.com") // machines without these clients
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Run(); err != nil {
				t.Errorf("%s tells people to write\n%s\ntoolhost validate says\n%s", page, block[1], &said)
			}
			if warnings := ofReaders.ReplaceAllString(said.String(), ""); strings.Contains(warnings, "warning:") {
				t.Errorf("%s tells people to write\n%s\ntoolhost validate warns\n%s", page, block[1], &said)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d configurations found, want those of README, configuration and plugins", found)
	}
}

// typed matches toolhost commands in a page: in shell blocks, and after the prompt in blocks
// with output.
var typed = regexp.MustCompile(`(?m)^(?:\$ )?(?:bin/)?toolhost ([^#|\n]+)`)

// shellBlock matches shell blocks in a page.
var shellBlock = regexp.MustCompile("(?s)```(?:sh)?\n(.*?)```")

// TestCommandsInDocsExist requests the help of every command in the docs, with its flags.
func TestCommandsInDocsExist(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
	for page, least := range map[string]int{"../README.md": 10, "../docs/cli.md": 15} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for _, command := range typed.FindAllStringSubmatch(block[1], -1) {
				if strings.HasPrefix(command[1], "is ") { // output: "toolhost is serving"
					continue
				}
				found++
				args := words.FindAllString(command[1], -1)
				help, err := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), append(args, "--help")...).CombinedOutput()
				if err != nil {
					t.Errorf("%s says %q; toolhost %s --help: %v\n%s", page, command[0], command[1], err, help)
				}
				if bytes.Contains(help, []byte("Available Commands:")) {
					t.Errorf("%s says %q, of which the last word is no command:\n%s", page, command[0], help)
				}
			}
		}
		if found < least {
			t.Errorf("%d commands found in %s, want %d or more", found, page, least)
		}
	}
}

// TestPlacesInDocsAreRight compares line numbers of config.hcl in the docs with the default
// configuration.
func TestPlacesInDocsAreRight(t *testing.T) {
	t.Parallel()
	page, want := readFile(t, "../docs/cli.md"), askedAt(t)
	if said := strings.Count(page, "approval of side_effecting calls at"); said == 0 || said != strings.Count(page, want) {
		t.Errorf("docs/cli.md does not say each time that side_effecting calls are asked about at %s", want)
	}
	for _, held := range []struct{ page, text, line string }{
		{"rest-api", `"where":"%s"`, "  approval { side_effecting = "},
		{"cli", `commands.unlisted "tee" at %s`, "  commands {"},
		{"cli", `commands.allow "ls" at %s`, `      "ls", `},
		{"cli", "fs      auto       yes     %s", `plugin "fs" {`},
		{"cli", "git     auto       yes     %s", `plugin "git" {`},
		{"cli", "shell   auto       yes     %s", `plugin "shell" {`},
		{"cli", "web     auto       yes     %s", `plugin "web" {`},
		{"cli", "memory  auto       yes     %s", `plugin "memory" {`},
	} {
		text := fmt.Sprintf(held.text, placeOf(t, held.line))
		if page := "../docs/" + held.page + ".md"; !strings.Contains(readFile(t, page), text) {
			t.Errorf("%s does not say %q", page, text)
		}
	}
}

// askedAt returns the place in the default configuration that asks about a write.
func askedAt(t *testing.T) string {
	t.Helper()
	return placeOf(t, "  approval { side_effecting = ")
}

// placeOf returns the first place in the default configuration where a line begins with a
// text.
func placeOf(t *testing.T, line string) string {
	t.Helper()
	before, _, found := strings.Cut(readFile(t, "../config.hcl"), "\n"+line)
	if !found {
		t.Fatalf("config.hcl has no line that begins with %q", line)
	}
	return fmt.Sprintf("config.hcl:%d", strings.Count(before, "\n")+2)
}

// TestNewcomersLeaveNothing checks that git ignores the files that README has users create.
func TestNewcomersLeaveNothing(t *testing.T) {
	t.Parallel()
	readme, ignored := readFile(t, "../README.md"), strings.Fields(readFile(t, "../.gitignore"))
	made := regexp.MustCompile(`toolhost call (?:write_file|create_directory) .*?path=(\S+)`).FindAllStringSubmatch(readme, -1)
	if len(made) < 2 {
		t.Fatalf("README makes %q, want a file and a directory", made)
	}
	for _, what := range made {
		if !slices.Contains(ignored, "/"+what[1]) && !slices.Contains(ignored, "/"+what[1]+"/") {
			t.Errorf("README makes %s, and .gitignore does not name it", what[1])
		}
	}
}

// TestReadmeRunsWhatMakeRuns compares the commands in README with the Makefile.
func TestReadmeRunsWhatMakeRuns(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nrun: build\n\tbin/toolhost serve --config config.hcl\n"; !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile lacks %q", want)
	}
	for _, target := range regexp.MustCompile(`(?m)^make ([a-z]+)`).FindAllStringSubmatch(string(readme), -1) {
		if !regexp.MustCompile(`(?m)^` + target[1] + `:`).Match(makefile) {
			t.Errorf("README says %q, which the Makefile does not have", target[0])
		}
	}
}
