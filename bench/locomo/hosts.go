package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// hosts are a running toolhost for each user.
type hosts struct {
	dir, bin, block string
	users           map[string]*user
}

// user is one user's host, and the names of its notes.
type user struct {
	session *mcp.ClientSession
	turns   map[string]string // by note_id
}

// note is a turn of a conversation.
type note struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Source  string `json:"source"`
	Session string `json:"session"`
	Seq     int    `json:"seq"`
	Time    string `json:"time"`
}

// memoryBlock returns the plugin's block of a configuration, unchanged.
func memoryBlock(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, block, found := strings.Cut(string(text), "\nplugin \"memory\" {\n")
	block, _, closed := strings.Cut(block, "\n}\n")
	if !found || !closed {
		return "", fmt.Errorf("%s has no block plugin \"memory\"", path)
	}
	return "plugin \"memory\" {\n" + block + "\n}\n", nil
}

// user returns a user's host, and starts it if necessary.
func (h *hosts) user(ctx context.Context, name string) (*user, error) {
	if u := h.users[name]; u != nil {
		return u, nil
	}
	dir := filepath.Join(h.dir, fmt.Sprint(len(h.users)))
	if err := os.MkdirAll(filepath.Join(dir, "ws"), 0o700); err != nil {
		return nil, err
	}
	config := fmt.Sprintf("workspace = \"ws\"\nstate_dir = \"state\"\nplugin_dir = %q\nserver { listen = \"\" }\nauth { local_user = %q }\npolicy { actions_per_hour = \"unlimited\" }\nclient \"locomo\" { structured = true }\n%s",
		filepath.Join(h.bin, "plugins"), name, h.block)
	path := filepath.Join(dir, "config.hcl")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, "toolhost"), "mcp", "--config", path, "--log-level", "warn")
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "locomo", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	u := &user{session: session, turns: map[string]string{}}
	h.users[name] = u
	return u, nil
}

func (h *hosts) close() error {
	var errs []error
	for _, u := range h.users {
		errs = append(errs, u.session.Close())
	}
	return errors.Join(errs...)
}

// call calls a tool and reads its structured result.
func (u *user) call(ctx context.Context, tool string, args map[string]any, out any) error {
	r, err := u.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err
	}
	data, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return err
	}
	if r.IsError {
		return fmt.Errorf("%s failed: %s", tool, data)
	}
	return json.Unmarshal(data, out)
}

// save saves a turn as a note.
func (u *user) save(ctx context.Context, n note) error {
	args := map[string]any{"content": n.Text, "category": "conversation", "source": n.Source, "session": n.Session, "seq": n.Seq}
	if at, err := time.Parse("3:04 pm on 2 January, 2006", n.Time); err == nil {
		args["occurred_at"] = at.Format(time.RFC3339)
	}
	var saved struct {
		NoteID string `json:"note_id"`
	}
	if err := u.call(ctx, "memory_save", args, &saved); err != nil {
		return err
	}
	u.turns[saved.NoteID] = n.ID
	return nil
}

// search returns the turns that a question finds.
func (u *user) search(ctx context.Context, query, mode string, k int) ([]string, error) {
	var found struct {
		Results []struct {
			NoteID string `json:"note_id"`
		} `json:"results"`
	}
	args := map[string]any{"query": query, "top_k": k, "include_conversation": true, "mode": mode}
	if err := u.call(ctx, "memory_search", args, &found); err != nil {
		return nil, err
	}
	ids := []string{}
	for _, r := range found.Results {
		ids = append(ids, u.turns[r.NoteID])
	}
	return ids, nil
}
