package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bin holds the programs under test, and a folder with a configuration for each
// host that is measured.
var bin string

func TestMain(m *testing.M) {
	if how := os.Getenv(bareServer); how != "" {
		if err := serveBare(context.Background(), how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run()) // only benchmarks need the programs
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "toolhost-bench-")
	if err == nil {
		defer os.RemoveAll(dir)
		bin = dir
		err = buildAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// copies is how many plugins a host has where that matters.
const copies = 5

// buildAll builds the host, the plugin of examples/hello with copies under other names, the
// plugin that answers with a large text, the shipped plugins, and the program that converts
// pages to markdown.
func buildAll(dir string) error {
	errs := []error{
		build("../host", dir, "toolhost", "."),
		build("../examples/hello", dir, "hello", "."),
		build("../host", dir, "probe", "./testdata/plugins/probe"),
		build("../plugins/fs", dir, "search", "./testdata/search"),
		build("..", dir, "fs", "./plugins/fs"),
		build("..", dir, "git", "./plugins/git"),
		build("..", dir, "shell", "./plugins/shell"),
		build("../plugins/web", dir, "article", "./testdata/article"),
		build("..", dir, "mcp", "./plugins/mcp"),
		build("..", dir, "memory", "./plugins/memory"),
		build("..", dir, "web", "./plugins/web"),
	}
	for i := range copies {
		errs = append(errs, buildCopy(dir, fmt.Sprintf("hello%d", i+1)))
	}
	return errors.Join(errs...)
}

func build(in, dir, out, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, out), pkg)
	cmd.Dir = in
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", out, err, text)
	}
	return nil
}

// buildCopy builds examples/hello with a plugin and a tool of another name.
func buildCopy(dir, name string) error {
	module := filepath.Join(dir, "src", name)
	repository, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(module, 0o755); err != nil {
		return err
	}
	for _, file := range []string{"main.go", "go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("../examples/hello", file))
		if err != nil {
			return err
		}
		changed := strings.NewReplacer(`"hello"`, fmt.Sprintf("%q", name), "=> ../..", "=> "+repository).Replace(string(text))
		if err := os.WriteFile(filepath.Join(module, file), []byte(changed), 0o600); err != nil {
			return err
		}
	}
	return build(module, dir, name, ".")
}

// writeConfig writes the configuration of a separate host, and returns its path.
func writeConfig(b *testing.B, blocks ...string) string {
	b.Helper()
	dir := b.TempDir()
	path := filepath.Join(dir, "config.hcl")
	text := "workspace = \"ws\"\nstate_dir = \"state\"\nplugin_dir = \"" + bin + "\"\n" +
		"server { listen = \"127.0.0.1:0\" }\n" + strings.Join(blocks, "")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "ws"), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		b.Fatal(err)
	}
	return path
}

// pluginBlock enables a plugin; more is added to its block.
func pluginBlock(name, more string) string {
	return fmt.Sprintf("plugin %q {\n  path = %q\n  tier = \"read_only\"\n  claims = \"trust\"\n%s\n}\n", name, name, more)
}

// toolhost is the command that runs the host.
func toolhost(config string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "toolhost"), append(args, "--log-level", "warn", "--config", config)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// bare is the command that runs the server that the host is compared with.
func bare(how string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), bareServer+"="+how)
	cmd.Stderr = os.Stderr
	return cmd
}
