package main

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
)

// A server that says that its tools have changed is asked for them, and the host is told.
func TestListChanged(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 100)
	p := bridge(t, "other tools at each list", nil, sdktest.Options{ToolsChanged: func() { changed <- struct{}{} }})
	find(t, p.Tools(), "peer_tool_1")
	if got := p.Call(t.Context(), "peer_run", nil); got.Error != nil {
		t.Fatal(got.Error)
	}
	<-changed
	find(t, p.Tools(), "peer_tool_2")
	if got := p.Call(t.Context(), "peer_tool_2", nil); got.Error != nil {
		t.Errorf("the new tool = %v", got.Error)
	}
}

// A server that is started again may have other tools.
func TestListAfterCrash(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 100)
	p := bridge(t, "other tools after a crash", map[string]any{"env": map[string]any{"MARK": t.TempDir()}}, sdktest.Options{ToolsChanged: func() { changed <- struct{}{} }})
	find(t, p.Tools(), "peer_before")
	if got := p.Call(t.Context(), "peer_run", nil); got.Error == nil {
		t.Fatal("the server that ends answers")
	}
	if got := p.Call(t.Context(), "peer_run", nil); got.Error == nil || !strings.Contains(got.Error.Message, "it works again") {
		t.Fatalf("after its crash: %v", got.Error)
	}
	<-changed
	find(t, p.Tools(), "peer_after")
}
