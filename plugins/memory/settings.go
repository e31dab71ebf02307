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

// settings are the plugin's block in the host's configuration.
type settings struct {
	Embedder string `json:"embedder,omitempty" jsonschema:"what makes vectors: local, without a model; ollama; or openai, any server with its interface" enum:"local,ollama,openai" default:"local"`
	BaseURL  string `json:"base_url,omitempty" jsonschema:"where the embedder is; default http://127.0.0.1:11434 for ollama, https://api.openai.com/v1 for openai"`
	Model    string `json:"model,omitempty" jsonschema:"the embedder's model; default nomic-embed-text for ollama, text-embedding-3-small for openai"`
	APIKey   string `json:"api_key,omitempty" jsonschema:"the key of the embedder; better a secret, see api_key_secret" role:"secret"`
	Secret   string `json:"api_key_secret,omitempty" jsonschema:"the name of the secret that is the key of the embedder; it is granted in secrets of the plugin's block"`

	EmbedTimeout time.Duration `json:"embed_timeout,omitempty" jsonschema:"how long one request to the embedder may take" default:"30s"`
	EmbedWait    time.Duration `json:"embed_wait,omitempty" jsonschema:"how long a call waits for the embedder: then a note is embedded later, and a search goes by words" default:"3s"`

	VectorWeight *float64 `json:"vector_weight,omitempty" jsonschema:"what vectors count in a hybrid search; default 0.2 with the local embedder, else 0.5" min:"0"`
	FTSWeight    *float64 `json:"fts_weight,omitempty" jsonschema:"what words count in a hybrid search; default 0.8 with the local embedder, else 0.5" min:"0"`

	MaxNote      tool.ByteSize `json:"max_note,omitempty" jsonschema:"how large a note may be; 1MiB is what the arguments of a call have in all" min:"1B" max:"1MiB" default:"1MiB"`
	MaxNotes     int           `json:"max_notes,omitempty" jsonschema:"how many notes a user may have" min:"1" default:"500000"`
	MaxUsers     int           `json:"max_users,omitempty" jsonschema:"how many users' notes are kept open; those that were not used for long are closed" min:"1" default:"32"`
	IdleTimeout  time.Duration `json:"idle_timeout,omitempty" jsonschema:"how long a user's notes are kept open without a call" default:"10m"`
	Snapshots    int           `json:"snapshots,omitempty" jsonschema:"how many snapshots of a user's notes are kept" min:"1" default:"3"`
	KeepDaily    time.Duration `json:"keep_daily,omitempty" jsonschema:"how old notes of the category daily become, since they were last written, that are not pinned; 0s is no bound" min:"0s" default:"0s"`
	KeepSaid     time.Duration `json:"keep_conversation,omitempty" jsonschema:"how old notes of the category conversation become, since they were last written, that are not pinned; 0s is no bound" min:"0s" default:"0s"`
	KeepCore     time.Duration `json:"keep_core,omitempty" jsonschema:"how old notes of the category core become, since they were last written, that are not pinned; 0s is no bound" min:"0s" default:"0s"`
	MemoryBudget tool.ByteSize `json:"memory_budget,omitempty" jsonschema:"how much memory the indexes may take; default two fifths of the sandbox's limit. Of a user with more notes only the words are searched" min:"0B"`
}

// state is what the settings make.
type state struct {
	settings
	users       *users.Set
	key         *key
	words, near float64 // the weights of a hybrid search
	// snapshotting has one while a snapshot is written: whoever wants another waits.
	snapshotting chan struct{}
}

// configure takes the settings, which come before the first call.
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
		return &sdk.SettingError{Path: []string{"api_key"}, Summary: "api_key and api_key_secret: expected one of them"}
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

// weights are what words and vectors count in a hybrid search.
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

// users says how notes are kept. What the indexes leave of the memory is for what
// they make when they grow, and for SQLite.
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

// remote says where the server is.
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
				return nil, &sdk.SettingError{Path: []string{name}, Summary: name + " is for an embedder that is a server: embedder is local"}
			}
		}
		return embed.Local{}, nil
	}
	if err != nil {
		return nil, &sdk.SettingError{Path: []string{"base_url"}, Summary: "base_url: " + err.Error()}
	}
	return remote, nil
}
