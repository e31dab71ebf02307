package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
)

// TestPluginsInOtherLanguages makes the plugins of docs/plugins.md that are not in Go as the
// guide says, checks that they keep the contract, and calls them in each sandbox.
func TestPluginsInOtherLanguages(t *testing.T) {
	t.Parallel()
	_, guide, _ := strings.Cut(readFile(t, "../docs/plugins.md"), "\nTwo complete plugins follow.")
	for _, plugin := range []struct {
		name, heading, language, given, want string
		install                              func(t *testing.T, dir, commands string) (reads string)
	}{
		{"upper", "### Python", "python", "hello", "HELLO\n", installPython},
		{"lower", "### Node.js", "js", "HELLO", "hello\n", installNode},
	} {
		t.Run(plugin.language, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			moved := strings.NewReplacer("/opt/plugins", dir)
			_, section, _ := strings.Cut(guide, "\n"+plugin.heading+"\n")
			reads := plugin.install(t, dir, moved.Replace(codeIn(t, section, "sh")))
			program := filepath.Join(dir, plugin.name)
			if err := os.WriteFile(program, []byte(moved.Replace(codeIn(t, section, plugin.language))), 0o755); err != nil {
				t.Fatal(err)
			}
			_, settings, _ := strings.Cut(moved.Replace(codeIn(t, guide, "hcl")), fmt.Sprintf("plugin %q {\n", plugin.name))
			settings, _, _ = strings.Cut(settings, "\n}\n")
			settings = strings.Replace(settings, `.lib"]`, `.lib"`+reads+`]`, 1)
			for _, level := range []string{"strict", "isolated", "basic"} {
				config := filepath.Join(t.TempDir(), "config.hcl")
				leveled := strings.Replace(settings, "sandbox {\n", fmt.Sprintf("sandbox {\n isolation = %q\n", level), 1)
				text := fmt.Sprintf("workspace = %q\nplugin_dir = %q\nstate_dir = \"state\"\nserver { listen = \"\" }\nplugin %q {\n%s\n}\n",
					t.TempDir(), dir, plugin.name, leveled)
				if leveled == settings {
					t.Fatalf("the guide's block of %s has no sandbox:\n%s", plugin.name, settings)
				}
				if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				out, errs, code := cli(config, "call", plugin.name, "text="+plugin.given)
				if out != plugin.want || code != 0 {
					t.Errorf("%s: toolhost call %s = %q, exit code %d, want %q\n%s", level, plugin.name, out, code, plugin.want, errs)
				}
			}
			sdktest.RunBinary(t, program, sdktest.Options{
				Calls: []sdktest.Call{{Tool: plugin.name, Args: map[string]any{"text": plugin.given}}},
			})
		})
	}
}

// installPython runs the guide's commands with the system's Python.
func installPython(t *testing.T, _, commands string) string {
	t.Helper()
	if err := exec.Command("/usr/bin/python3", "-c", "import grpc, grpc_tools, cryptography").Run(); err != nil {
		missing(t, "grpcio of Python")
	}
	runCommands(t, commands)
	return ""
}

// installNode runs the guide's commands, but takes the packages that `make peers` installs.
func installNode(t *testing.T, dir, commands string) string {
	t.Helper()
	packages, err := filepath.Abs("../internal/tools/mcp/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "@grpc")); err != nil {
		missing(t, "@grpc/grpc-js")
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing(t, "node")
	}
	commands, npm, found := strings.Cut(commands, "npm install --prefix ")
	if lib, names, _ := strings.Cut(npm, " "); !found || names != "@grpc/grpc-js @grpc/proto-loader selfsigned\n" {
		t.Fatalf("the guide installs %q in %s, unlike make peers", names, lib)
	}
	runCommands(t, commands)
	if err := os.Symlink(packages, filepath.Join(dir, "lower.lib", "node_modules")); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(", %q", packages)
}

// runCommands runs commands of the guide in the checkout.
func runCommands(t *testing.T, commands string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", commands)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// codeIn returns the first block of code in a language.
func codeIn(t *testing.T, text, language string) string {
	t.Helper()
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		if block[1] == language {
			return block[2]
		}
	}
	t.Fatalf("the guide has no block in %s where it is expected", language)
	return ""
}
