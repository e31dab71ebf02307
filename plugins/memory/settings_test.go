package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/users"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Each setting takes effect.
func TestSettingsAreUsed(t *testing.T) {
	s := settings{
		EmbedWait: 1, MemoryBudget: 2, MaxUsers: 3, IdleTimeout: 4, MaxNotes: 5, KeepCore: 6, KeepDaily: 7, KeepSaid: 8,
		BaseURL: "b", Model: "m", EmbedTimeout: 9,
	}
	want := users.Options{
		Wait: 1, Budget: 2, MaxOpen: 3, Idle: 4, MaxNotes: 5,
		Keep: map[rank.Category]time.Duration{rank.Core: 6, rank.Daily: 7, rank.Conversation: 8},
	}
	if diff := gocmp.Diff(want, s.users(sdk.Config{MemoryLimit: tool.GiB})); diff != "" {
		t.Errorf("users() (-want +got):\n%s", diff)
	}
	if got := (&settings{}).users(sdk.Config{MemoryLimit: 1000}).Budget; got != 400 {
		t.Errorf("of 1000 bytes the indexes may take %d, want 400", got)
	}
	r := s.remote(&key{value: "k"})
	if k, err := r.Key(); err != nil || k != "k" || r.BaseURL != "b" || r.Model != "m" || r.Timeout != 9 {
		t.Errorf("remote() = %+v, with the key %q: %v", r, k, err)
	}
	for _, tt := range []struct {
		embedder    string
		words, near *float64
		want        [2]float64
	}{
		{"local", nil, nil, [2]float64{0.8, 0.2}},
		{"ollama", nil, nil, [2]float64{0.5, 0.5}},
		{"openai", new(0.9), nil, [2]float64{0.9, 0.5}},
		{"local", nil, new(0.7), [2]float64{0.8, 0.7}},
		{"openai", new(0.0), new(1.0), [2]float64{0, 1}},
	} {
		words, near := (&settings{Embedder: tt.embedder, FTSWeight: tt.words, VectorWeight: tt.near}).weights()
		if got := [2]float64{words, near}; got != tt.want {
			t.Errorf("the weights with %s are %v, want %v", tt.embedder, got, tt.want)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		settings settings
		want     string
	}{
		{settings{EmbedTimeout: -1}, "embed_timeout"},
		{settings{Embedder: "ollama", BaseURL: "nowhere"}, "base_url"},
		{settings{BaseURL: "http://x"}, "base_url"},
		{settings{Model: "m"}, "model"},
		{settings{APIKey: "k"}, "api_key"},
		{settings{Secret: "k"}, "api_key_secret"},
		{settings{Embedder: "openai", APIKey: "k", Secret: "k"}, "expected only one of them"},
		{settings{VectorWeight: new(float64), FTSWeight: new(float64)}, "fts_weight"},
		{settings{IdleTimeout: -1}, "idle_timeout"},
	} {
		m := &memory{plugin: newPlugin()}
		s := tt.settings
		s.Embedder = cmp.Or(s.Embedder, "local")
		s.EmbedTimeout, s.EmbedWait, s.IdleTimeout = cmp.Or(s.EmbedTimeout, time.Second), time.Second, cmp.Or(s.IdleTimeout, time.Second)
		s.MaxNote, s.MaxNotes, s.MaxUsers, s.Snapshots = cmp.Or(s.MaxNote, tool.KiB), cmp.Or(s.MaxNotes, 1), cmp.Or(s.MaxUsers, 1), cmp.Or(s.Snapshots, 1)
		if err := m.configure(t.Context(), sdk.Config{}, s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("configure(%+v) = %v, want %s", tt.settings, err, tt.want)
		}
	}
}

// The sdk refuses values beyond the bounds in the settings' tags, and names the setting.
func TestSettingsAreBounded(t *testing.T) {
	for name, value := range map[string]any{
		"max_note": 1 << 40, "max_notes": -1, "max_users": -1, "snapshots": -1, "keep_core": -1, "keep_daily": -1, "keep_conversation": -1,
		"memory_budget": -1, "vector_weight": -0.1, "fts_weight": -0.1,
	} {
		findings := fmt.Sprint(sdktest.Check(t.Context(), sdktest.InProcess(newPlugin()), sdktest.Options{Settings: map[string]any{name: value}}))
		if want := fmt.Sprintf("settings [%q]: %s is ", name, name); !strings.Contains(findings, want) {
			t.Errorf("findings with %s = %v: %s, want %q", name, value, findings, want)
		}
	}
}
