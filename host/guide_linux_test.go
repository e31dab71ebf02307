package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestPluginsInOtherLanguages makes the plugins of docs/plugins.md that are not in Go as the
// guide says, checks that they keep the contract, and calls them in each sandbox. Each has a tool
// that changes a file, of the name with _file.
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
				workspace := t.TempDir()
				text := fmt.Sprintf("workspace = %q\nplugin_dir = %q\nstate_dir = \"state\"\nserver { listen = \"\" }\nplugin %q {\n%s\ntool \"%s_file\" { approval = \"allow\" }\n}\n",
					workspace, dir, plugin.name, leveled, plugin.name)
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
				if err := os.WriteFile(filepath.Join(workspace, "notes.txt"), []byte(plugin.given+"\n"), 0o640); err != nil {
					t.Fatal(err)
				}
				out, errs, code = cli(config, "call", plugin.name+"_file", "path=notes.txt")
				if got := readFile(t, filepath.Join(workspace, "notes.txt")); got != plugin.want || code != 0 {
					t.Errorf("%s: toolhost call %s_file = %q, exit code %d, and the file holds %q, want %q\n%s", level, plugin.name, out, code, got, plugin.want, errs)
				}
			}
			checkFileTool(t, program, plugin.name+"_file", plugin.given, strings.TrimSpace(plugin.want))
			sdktest.RunBinary(t, program, sdktest.Options{
				Calls: []sdktest.Call{{Tool: plugin.name, Args: map[string]any{"text": plugin.given}}},
			})
		})
	}
}

// checkFileTool checks the preview of a tool that changes a file, what the tool refuses, and its
// setting max_size.
func checkFileTool(t *testing.T, program, name, given, want string) {
	t.Helper()
	workspace := t.TempDir()
	file := filepath.Join(workspace, "sub", "notes.txt")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, given)
	write(filepath.Join(workspace, "large"), strings.Repeat(given, 1000))
	write(filepath.Join(workspace, "kept", "notes.txt"), given)
	outside := t.TempDir()
	write(filepath.Join(outside, "notes.txt"), given)
	for link, to := range map[string]string{"link": file, "links": outside} {
		if err := os.Symlink(to, filepath.Join(workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	running := sdktest.StartBinary(t, program, sdktest.Options{
		Settings: map[string]any{"max_size": "1KiB"},
		Context:  tool.Context{Roots: []string{workspace}, Protected: []string{filepath.Join(workspace, "kept")}},
	})
	call := func(path string, digest []byte) tool.Result {
		arguments := fmt.Appendf(nil, `{"path":%q}`, path)
		return running.Run(t.Context(), tool.Call{Tool: name, Arguments: arguments, Context: tool.Context{PreviewDigest: digest}}, tool.Sink{})
	}
	for path, code := range map[string]tool.Code{
		"nothing": tool.Failed, "sub": tool.Failed, "link": tool.Failed, "links/notes.txt": tool.Failed, "large": tool.ResourceExhausted,
		"../notes.txt": tool.PermissionDenied, "kept/notes.txt": tool.PermissionDenied, filepath.Join(outside, "notes.txt"): tool.PermissionDenied,
	} {
		if got := call(path, nil); got.Error == nil || got.Error.Code != code {
			t.Errorf("%s of %s = %q, %v, want code %q", name, path, got.Text(), got.Error, code)
		}
		if shown, err := running.Preview(t.Context(), name, map[string]any{"path": path}); err == nil {
			t.Errorf("the preview of %s of %s = %+v, want an error", name, path, shown)
		}
	}
	if got := readFile(t, filepath.Join(outside, "notes.txt")); got != given {
		t.Errorf("%s has changed a file outside of the workspace: %q", name, got)
	}
	shown, err := running.Preview(t.Context(), name, map[string]any{"path": "sub/notes.txt"})
	if err != nil || len(shown.Content) == 0 || !strings.Contains(string(shown.Content[0].Data), want) {
		t.Fatalf("the preview of %s = %+v, %v, want %q in it", name, shown, err, want)
	}
	write(file, given+given)
	if got := call("sub/notes.txt", shown.Digest); got.Error == nil || got.Error.Code != tool.Conflict {
		t.Errorf("%s of a file that has changed = %q, %v, want code %q", name, got.Text(), got.Error, tool.Conflict)
	}
	write(file, given)
	got := call("sub/notes.txt", shown.Digest)
	effects := []tool.Effect{{Kind: "file.changed", Target: "sub/notes.txt", Operation: "update"}}
	if text := readFile(t, file); got.Error != nil || !slices.Equal(got.Effects, effects) || text != want {
		t.Errorf("%s = %q, %v with %+v, and the file holds %q, want %q", name, got.Text(), got.Error, got.Effects, text, want)
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
