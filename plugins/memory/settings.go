package main

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/users"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// settings is the plugin's block in the host's configuration.
type settings struct {
	Embedder string `json:"embedder,omitempty" jsonschema:"what turns text into vectors: local, which needs no model; ollama; or openai, any server with OpenAI's API" enum:"local,ollama,openai" default:"local"`
	BaseURL  string `json:"base_url,omitempty" jsonschema:"address of the embedding server; default http://127.0.0.1:11434 for ollama, https://api.openai.com/v1 for openai"`
	Model    string `json:"model,omitempty" jsonschema:"model of the embedding server; default nomic-embed-text for ollama, text-embedding-3-small for openai"`
	APIKey   string `json:"api_key,omitempty" jsonschema:"API key of the embedding server; prefer a secret, see api_key_secret" role:"secret"`
	Secret   string `json:"api_key_secret,omitempty" jsonschema:"name of the secret that holds the API key of the embedding server; list it in secrets of the plugin's block"`

	EmbedTimeout time.Duration `json:"embed_timeout,omitempty" jsonschema:"timeout of one request to the embedding server" default:"30s"`
	EmbedWait    time.Duration `json:"embed_wait,omitempty" jsonschema:"how long a call waits for the embedding server; after that a note is embedded later, and a search uses words only" default:"3s"`

	VectorWeight *float64 `json:"vector_weight,omitempty" jsonschema:"weight of vectors in a hybrid search; default 0.2 with the local embedder, else 0.5" min:"0"`
	FTSWeight    *float64 `json:"fts_weight,omitempty" jsonschema:"weight of words in a hybrid search; default 0.8 with the local embedder, else 0.5" min:"0"`

	MaxNote      tool.ByteSize `json:"max_note,omitempty" jsonschema:"maximum size of a note; all arguments of a call together have at most 1MiB" min:"1B" max:"1MiB" default:"1MiB"`
	MaxNotes     int           `json:"max_notes,omitempty" jsonschema:"maximum number of notes of a user" min:"1" default:"500000"`
	MaxUsers     int           `json:"max_users,omitempty" jsonschema:"maximum number of users whose notes are open at the same time; the least recently used are closed" min:"1" default:"32"`
	IdleTimeout  time.Duration `json:"idle_timeout,omitempty" jsonschema:"how long a user's notes stay open without a call" default:"10m"`
	Snapshots    int           `json:"snapshots,omitempty" jsonschema:"maximum number of snapshots of a user's notes" min:"1" default:"3"`
	KeepDaily    time.Duration `json:"keep_daily,omitempty" jsonschema:"maximum age of unpinned daily notes since they were last written; 0s means no limit" min:"0s" default:"0s"`
	KeepSaid     time.Duration `json:"keep_conversation,omitempty" jsonschema:"maximum age of unpinned conversation notes since they were last written; 0s means no limit" min:"0s" default:"0s"`
	KeepCore     time.Duration `json:"keep_core,omitempty" jsonschema:"maximum age of unpinned core notes since they were last written; 0s means no limit" min:"0s" default:"0s"`
	MemoryBudget tool.ByteSize `json:"memory_budget,omitempty" jsonschema:"memory for the indexes of all users; default two fifths of the sandbox's limit. For a user whose index does not fit, only words are searched" min:"0B"`
}

// state is made from the settings.
type state struct {
	settings
	users       *users.Set
	key         *key
	words, near float64 // the weights of a hybrid search
	// snapshotting is a semaphore: only one snapshot is written at a time.
	snapshotting chan struct{}
}

// configure applies the settings. The host sends them before the first call.
func (m *memory) configure(ctx context.Context, c sdk.Config, s settings) error {
	for _, check := range []struct {
		name string
		bad  bool
		want string
	}{
		{"embed_timeout", s.EmbedTimeout <= 0, "more than 0s"},
		{"embed_wait", s.EmbedWait <= 0, "more than 0s"},
		{"fts_weight", s.FTSWeight != nil && s.VectorWeight != nil && *s.FTSWeight+*s.VectorWeight == 0, "more than 0 if vector_weight is 0"},
		{"idle_timeout", s.IdleTimeout <= 0, "more than 0s"},
	} {
		if check.bad {
			return &sdk.SettingError{Path: []string{check.name}, Summary: fmt.Sprintf("%s: expected %s", check.name, check.want)}
		}
	}
	if s.APIKey != "" && s.Secret != "" {
		return &sdk.SettingError{Path: []string{"api_key"}, Summary: "api_key and api_key_secret: expected only one of them"}
	}
	k := &key{secret: s.Secret, value: s.APIKey}
	embedder, err := m.embedder(s, k)
	if err != nil {
		return err
	}
	opts := s.users(c)
	opts.Embedder, opts.Logger = embedder, m.plugin.Logger()
	made := &state{settings: s, key: k, users: users.New(ctx, opts), snapshotting: make(chan struct{}, 1)}
	made.words, made.near = s.weights()
	if before := m.state.Swap(made); before != nil {
		before.users.Close()
	}
	m.plugin.OnStop(made.users.Close)
	return nil
}

// weights returns the weights of words and vectors in a hybrid search.
func (s *settings) weights() (words, near float64) {
	words, near = 0.5, 0.5
	if s.Embedder == "local" {
		words, near = 0.8, 0.2
	}
	if s.FTSWeight != nil {
		words = *s.FTSWeight
	}
	if s.VectorWeight != nil {
		near = *s.VectorWeight
	}
	return words, near
}

// users returns the options of the users' notes. The indexes get two fifths of the
// memory; growing indexes and SQLite need the rest.
func (s *settings) users(c sdk.Config) users.Options {
	budget := s.MemoryBudget
	if budget == 0 {
		budget = c.MemoryLimit / 5 * 2
	}
	return users.Options{
		Wait: s.EmbedWait, Budget: int64(budget), MaxOpen: s.MaxUsers, Idle: s.IdleTimeout, MaxNotes: s.MaxNotes,
		Keep: map[rank.Category]time.Duration{rank.Core: s.KeepCore, rank.Daily: s.KeepDaily, rank.Conversation: s.KeepSaid},
	}
}

// remote returns the options of an embedding server.
func (s *settings) remote(k *key) embed.RemoteOptions {
	return embed.RemoteOptions{BaseURL: s.BaseURL, Model: s.Model, Key: k.get, Timeout: s.EmbedTimeout}
}

// embedder returns the embedder of the settings.
func (m *memory) embedder(s settings, k *key) (embed.Embedder, error) {
	opts := s.remote(k)
	opts.Client = m.plugin.HTTPClient()
	var remote *embed.Remote
	var err error
	switch s.Embedder {
	case "ollama":
		remote, err = embed.NewOllama(opts)
	case "openai":
		remote, err = embed.NewOpenAI(opts)
	default:
		for name, value := range map[string]string{"base_url": s.BaseURL, "model": s.Model, "api_key": s.APIKey, "api_key_secret": s.Secret} {
			if value != "" {
				return nil, &sdk.SettingError{Path: []string{name}, Summary: name + " requires embedder ollama or openai: embedder is local"}
			}
		}
		return embed.Local{}, nil
	}
	if err != nil {
		return nil, &sdk.SettingError{Path: []string{"base_url"}, Summary: "base_url: " + err.Error()}
	}
	return remote, nil
}
