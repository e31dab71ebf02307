package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestSearchesOfDirectories checks that a person is asked about a search of a directory only if
// it would read a sensitive file.
func TestSearchesOfDirectories(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"plain", "secret/.ssh", "many"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"plain/main.go", "secret/.env", "secret/main.go", "secret/.ssh/k"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("secret", filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret/.env", filepath.Join(ws, "plain", "e")); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Settings{Policy: rules, Roots: []string{ws}}
	asks := func(line string) string {
		in := policy.Input{
			Plugin: "shell", Tool: "run", Tier: tool.ReadOnly, Folders: []string{ws},
			Commands: []policy.Command{{Line: command.Parse(line, rules.Reading(s.Roots))}},
		}
		s.notePatches(&in)
		s.noteSearches(&in)
		return strings.TrimPrefix(rules.Decide(in).Rule, "paths.sensitive: ")
	}
	for line, why := range map[string]string{
		"grep -r x .":                                         "grep would read secret/.env, without --exclude=.env",
		"grep -r x":                                           "grep would read secret/.env, without --exclude=.env",
		"cd secret && grep -rn x .":                           "grep would read secret/.env, without --exclude=.env",
		"grep -r x plain link":                                "grep would read secret/.env, without --exclude=.env",
		"grep -r x --exclude=.env secret":                     "grep would read secret/.ssh/k, without --exclude=k",
		"for x in --exclude=.env; do cat ${x#*=}; done":       `paths.sensitive ".env"`,
		"cat --exclude=.env":                                  `paths.sensitive ".env"`,
		"grep --exclude=.env$(cat .env) x a":                  `paths.sensitive ".env"`,
		"grep -r x --exclude plain -- .env":                   `paths.sensitive ".env"`,
		"grep -r -- x --exclude=.env secret":                  `paths.sensitive ".env"`,
		"grep -r '--exclude=.en*' '--include=.e?v' x secret":  "grep would read secret/.env, without --exclude=.env",
		"grep -r '--exclude=.en[v]' x secret":                 "grep would read secret/.env, without --exclude=.env",
		"grep -r '--include=.e*' x secret":                    "grep would read secret/.env, without --exclude=.env",
		"grep -R x plain":                                     "grep searches all files below a directory",
		"grep --dereference-rec x plain":                      "the option --dereference-rec may make grep search all files below a directory",
		"grep -d recurse x plain":                             "the option -d may make grep search all files below a directory",
		"grep -r $x plain":                                    "grep searches all files below a directory",
		"rgrep x plain":                                       "rgrep searches all files below a directory",
		"grep -r x plain; cd link; grep -r x":                 "grep would read secret/.env, without --exclude=.env",
		"rg -g '?env' x secret":                               "rg would read secret/.env",
		"rg --glob '[.]env' x secret":                         "rg searches all files that match [.]env",
		"rg -ng '*' x secret":                                 "* may name sensitive files",
		"rg -g '*.go' x secret":                               "",
		"rg -uu x -- . --files":                               "rg searches hidden, ignored or linked files",
		"rg -L x":                                             "rg searches hidden, ignored or linked files",
		"rg --follow x":                                       "rg searches hidden, ignored or linked files",
		"rg --files -uu":                                      "",
		"rg x":                                                "",
		"diff -N plain secret":                                "diff follows the link plain/e",
		"diff secret many":                                    "diff would read secret/.env",
		"diff plain/main.go secret/main.go":                   "",
		"git diff plain secret":                               "git diff compares any files outside of a repository",
		"git diff -- plain secret":                            "git diff compares any files outside of a repository",
		"git diff ../a ../b":                                  "git diff may compare files outside of the repository",
		"grep -r x plain":                                     "",
		"grep -rn -e x -C2 plain":                             "",
		"cd plain; grep -rl x ../plain":                       "",
		"grep -r --exclude-dir=.ssh --exclude=.env x .":       "",
		"grep -r --exclude-dir .ssh --exclude .env x .":       "",
		"grep -r --exclude-dir=.ssh '--exclude=.e*' x secret": "",
		"grep -r --include=*.go x .":                          "the option --include=*.go may make grep search all files below a directory", // the shell may replace the word
		"grep -r '--include=*.go' x .":                        "",
		"grep -r x none":                                      "",
	} {
		if got := asks(line); got != why && (why != "" || strings.Contains(got, "would") || strings.Contains(got, "sensitive")) {
			t.Errorf("%s: %q, want %q", line, got, why)
		}
	}
	for i := range maxSearched / 10 {
		if err := os.Symlink("x", filepath.Join(ws, "many", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	for searches, tooMany := range map[int]bool{9: false, 11: true} {
		if got := asks("grep -r x" + strings.Repeat(" many", searches)); strings.Contains(got, "too many") != tooMany {
			t.Errorf("%d searches of many files: %q, want that they are too many: %t", searches, got, tooMany)
		}
	}
}
