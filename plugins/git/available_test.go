package main

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestRemoteToolsNeedANetwork starts the plugin with and without a network.
func TestRemoteToolsNeedANetwork(t *testing.T) {
	for _, tt := range []struct {
		name      string
		noNetwork bool
		protocols []string
		available bool
	}{
		{"a network", false, nil, true},
		{"no network", true, nil, false},
		{"no network, other protocols", true, []string{"https", "ssh"}, false},
		{"no network, remotes on this machine", true, []string{"file"}, true},
	} {
		settings := map[string]any{}
		if tt.protocols != nil {
			settings["protocols"] = tt.protocols
		}
		p := sdktest.Start(t, newPlugin(layers{}), sdktest.Options{Settings: settings, Config: sdk.Config{NoNetwork: tt.noNetwork}})
		found := 0
		for _, spec := range p.Tools() {
			remote := spec.Name == "git_clone" || spec.Name == "git_fetch" || spec.Name == "git_pull" || spec.Name == "git_push"
			if remote {
				found++
			}
			if got, want := spec.Unavailable == "", tt.available || !remote; got != want {
				t.Errorf("%s: %s is unavailable: %q", tt.name, spec.Name, spec.Unavailable)
			}
		}
		if found != 4 {
			t.Errorf("%s: %d remote tools, want 4", tt.name, found)
		}
		got := p.Call(t.Context(), "git_fetch", map[string]any{"path": "none"})
		if refused := got.Error != nil && got.Error.Code == tool.Unavailable && strings.Contains(got.Error.Message, "there is no network"); refused == tt.available {
			t.Errorf("%s: git_fetch = %v", tt.name, got.Error)
		}
	}
}
