package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/embed/embedtest"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The key of the embedder can be a secret, which is sent only to the server. Without it notes
// are saved and found by their words.
func TestTheKeyIsASecret(t *testing.T) {
	server := embedtest.Start(t)
	run := func(dir string, granted map[string]string) *plugin {
		return &plugin{sdktest.Start(t, newPlugin(), sdktest.Options{
			Settings: map[string]any{"embedder": "openai", "base_url": server.URL + "/v1", "api_key_secret": "embedding", "embed_wait": "1m"},
			Secrets:  granted, Context: tool.Context{UserDir: dir},
		}), t}
	}
	dir := t.TempDir()
	p := run(dir, nil)
	p.save(args{"content": "My automobile needs new tyres"})
	if got := p.find(args{"query": "automobile"}); len(got) != 1 {
		t.Errorf("without the key %q is found", got)
	}
	if r := p.Call(t.Context(), "memory_search", args{"query": "car", "mode": "vector"}); codeOf(r) != tool.PermissionDenied {
		t.Errorf("a search by vectors without the key = %v", r.Error)
	}
	if r := p.must("memory_stats", nil, nil); !strings.Contains(r.Text(), "the embedder's API key is not available") || !strings.Contains(r.Text(), `"embedding" is not granted`) {
		t.Errorf("memory_stats without the key = %q", r.Text())
	}
	if asked := server.Requests(); len(asked) != 0 {
		t.Errorf("the server was asked without the key: %v", asked)
	}
	p.Close()

	p = run(dir, map[string]string{"embedding": "sesame\n"})
	p.save(args{"content": "The physician is on holiday"})
	for deadline, look := time.Now().Add(time.Minute), time.Tick(time.Millisecond); ; <-look { // the first note is embedded in the background
		r := p.must("memory_stats", nil, nil)
		if strings.Contains(r.Text(), "2 of 2 passages") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the note that has waited for the key was not embedded: %q", r.Text())
		}
	}
	if got := p.find(args{"query": "car", "mode": "vector", "top_k": 1}); len(got) != 1 || !strings.Contains(got[0], "automobile") {
		t.Errorf("vector finds %q, want the automobile", got)
	}
	for _, asked := range server.Requests() {
		if asked.Authorization != "Bearer sesame" {
			t.Errorf("the server was asked with %q", asked.Authorization)
		}
	}
}

// Background work has the key for a while after a call.
func TestTheKeyIsNotKept(t *testing.T) {
	k := &key{secret: "embedding", value: "sesame", fetched: time.Now()}
	if value, err := k.get(); value != "sesame" || err != nil {
		t.Errorf("get() = %q, %v", value, err)
	}
	k.fetched = time.Now().Add(-keyKept)
	if value, err := k.get(); value != "" || !errors.Is(err, embed.ErrNoKey) || k.value != "" {
		t.Errorf("get() of an old key = %q, %v; %q is kept", value, err, k.value)
	}
}

// An import does not call the embedder for each note: its notes are embedded afterwards, many
// texts at a time.
func TestImportDoesNotWait(t *testing.T) {
	server := embedtest.Start(t)
	p := start(t, map[string]any{"embedder": "ollama", "base_url": server.URL, "embed_wait": "1m"})
	p.must("memory_import", args{"data": `{"content":"My automobile needs new tyres"}` + "\n" + `{"content":"The physician is on holiday"}`}, nil)
	for deadline, look := time.Now().Add(time.Minute), time.Tick(time.Millisecond); ; <-look {
		r := p.must("memory_stats", nil, nil)
		if strings.Contains(r.Text(), "2 of 2 passages") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("what was imported was not embedded: %q", r.Text())
		}
	}
	if asked := server.Requests(); len(asked) != 1 || len(asked[0].Texts) != 2 {
		t.Errorf("the embedder was asked %d times, the first time for %q; want once for both", len(asked), asked[0].Texts)
	}
}

// The number of texts that the embedder refuses is reported.
func TestRefusedTextsAreTold(t *testing.T) {
	server := embedtest.Start(t)
	p := start(t, map[string]any{"embedder": "ollama", "base_url": server.URL, "embed_wait": "1m"})
	server.Respond(func(w http.ResponseWriter, texts []string) bool {
		if strings.Contains(strings.Join(texts, " "), "unspeakable") {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return true
		}
		return false
	})
	p.save(args{"content": "an unspeakable automobile"})
	p.save(args{"content": "My automobile needs new tyres"})
	const want = "1 of 2 passages have a vector"
	for deadline, look := time.Now().Add(time.Minute), time.Tick(time.Millisecond); ; <-look { // it is found out in the background
		r := p.must("memory_stats", nil, nil)
		if strings.Contains(r.Text(), want) && strings.Contains(r.Text(), "the embedder refused 1 passages") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("memory_stats = %q, want that %s", r.Text(), want)
		}
	}
}
