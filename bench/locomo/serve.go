package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// request is a line of standard input.
type request struct {
	Op    string `json:"op"`
	User  string `json:"user"`
	Query string `json:"query"`
	K     int    `json:"k"`
	note
}

// answer answers requests, one line each, until the input ends.
func answer(ctx context.Context, h *hosts, mode string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), 16<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("a line is no request: %w", err)
		}
		reply, err := r.serve(ctx, h, mode)
		if err != nil {
			reply = map[string]any{"ok": false, "error": err.Error()}
		}
		if err := json.NewEncoder(out).Encode(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (r *request) serve(ctx context.Context, h *hosts, mode string) (map[string]any, error) {
	u, err := h.user(ctx, r.User)
	if err != nil {
		return nil, err
	}
	switch r.Op {
	case "add":
		return map[string]any{"ok": true}, u.save(ctx, r.note)
	case "search":
		ids, err := u.search(ctx, r.Query, mode, r.K)
		return map[string]any{"ids": ids}, err
	}
	return nil, fmt.Errorf("there is no op %q", r.Op)
}
