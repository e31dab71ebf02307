package main

import (
	"os"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary is the plugin when it is told so: a test of the real
// process needs no build of its own.
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

// TestProcess calls the plugin in a process of its own.
func TestProcess(t *testing.T) {
	p := sdktest.StartBinary(t, os.Args[0], sdktest.Options{Env: []string{"HELLO_AS_PLUGIN=1"}})
	if got := p.Call(t.Context(), "hello", Args{Name: "Ada"}); got.Text() != "Hello, Ada!" {
		t.Errorf("hello = %q (%v), want %q", got.Text(), got.Error, "Hello, Ada!")
	}
}
