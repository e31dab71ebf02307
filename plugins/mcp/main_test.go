package main

import (
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary becomes the plugin, or a server that the plugin starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		serveScript(os.Args[2])
		return
	}
	if os.Getenv("MCP_AS_PLUGIN") != "" {
		newPlugin().Serve()
	}
	os.Exit(m.Run())
}

// program returns the command of a server of the tests.
func program(tb testing.TB, script string) []string {
	tb.Helper()
	path, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return []string{"env", "GORACE=atexit_sleep_ms=0", path, "serve", script}
}

// bridge starts the plugin with a server of the tests.
func bridge(tb testing.TB, script string, settings map[string]any, options sdktest.Options) *sdktest.Plugin {
	tb.Helper()
	if settings == nil {
		settings = map[string]any{}
	}
	settings["command"] = program(tb, script)
	options.Settings, options.Config.Name = settings, "peer"
	return sdktest.Start(tb, newPlugin(), options)
}

// find returns a tool by name.
func find(t *testing.T, tools []tool.Spec, name string) tool.Spec {
	t.Helper()
	var names []string
	for _, spec := range tools {
		if spec.Name == name {
			return spec
		}
		names = append(names, spec.Name)
	}
	t.Fatalf("no tool %s among %s", name, strings.Join(names, ", "))
	return tool.Spec{}
}

func TestContract(t *testing.T) {
	t.Parallel()
	options := sdktest.Options{
		Env:      []string{"MCP_AS_PLUGIN=1", "PATH=" + os.Getenv("PATH")},
		Settings: map[string]any{"command": program(t, "good")},
		Calls: []sdktest.Call{
			{Tool: "mcp_echo", Args: map[string]any{"text": "hello"}},
			{Tool: "mcp_add", Args: map[string]any{"a": 1, "b": 2}},
			{Tool: "mcp_wait", Args: map[string]any{}, Endless: true},
		},
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, newPlugin(), options) })
	t.Run("binary", func(t *testing.T) { sdktest.RunBinary(t, os.Args[0], options) })
}
