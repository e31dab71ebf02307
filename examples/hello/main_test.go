package main

import (
	"os"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary becomes the plugin if its environment says so: a test with a real process
// needs no separate build.
func TestMain(m *testing.M) {
	if os.Getenv("HELLO_AS_PLUGIN") != "" {
		newPlugin().Serve()
	}
	os.Exit(m.Run())
}

func TestHello(t *testing.T) {
	p := sdktest.Start(t, newPlugin(), sdktest.Options{})
	for _, tt := range []struct {
		args Args
		want string
		code tool.Code
	}{
		{args: Args{Name: "Ada"}, want: "Hello, Ada!"},
		{args: Args{Name: "Ada", Greeting: "Goodbye"}, want: "Goodbye, Ada!"},
		{args: Args{}, code: tool.InvalidArgument},
	} {
		got := p.Call(t.Context(), "hello", tt.args)
		if got.Text() != tt.want {
			t.Errorf("hello(%+v) = %q, want %q", tt.args, got.Text(), tt.want)
		}
		if code := codeOf(got); code != tt.code {
			t.Errorf("hello(%+v) failed with code %q, want %q", tt.args, code, tt.code)
		}
	}
}

func codeOf(r tool.Result) tool.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// TestContract checks the plugin contract, in this process and in a separate one.
func TestContract(t *testing.T) {
	options := sdktest.Options{Calls: []sdktest.Call{{Tool: "hello", Args: Args{Name: "Ada"}}}}
	sdktest.Run(t, newPlugin(), options)
	options.Env = []string{"HELLO_AS_PLUGIN=1"}
	sdktest.RunBinary(t, os.Args[0], options)
}
