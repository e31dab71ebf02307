package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
)

// TestOddRequestsAreAnsweredOnce sends invalid requests to the real program, which passes them
// to its own host or to a running one. Each gets exactly one answer, with a code.
func TestOddRequestsAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config string
	}{
		{"alone", writeConfig(t, fsBlock)},
		{"relayed", serve(t, writeConfig(t, listening+fsBlock)).config},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := toolhost(t.Context(), tt.config, "mcp")
			cmd.Stdin = strings.NewReader(`{"id":1,"method":"ping"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"ping"}
`)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			answers := map[string][]int{} // codes by id
			lines := bufio.NewScanner(strings.NewReader(string(out)))
			for lines.Scan() {
				var answer struct {
					ID    json.RawMessage
					Error struct{ Code int }
				}
				if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
					t.Fatalf("%q: %v", lines.Text(), err)
				}
				answers[string(answer.ID)] = append(answers[string(answer.ID)], answer.Error.Code)
			}
			for id, code := range map[string]int{"1": -32600, "2": -32600, "3": 0} {
				if got := answers[id]; len(got) != 1 || got[0] != code {
					t.Errorf("request %s has the answers %v, want one with code %d; all: %s", id, got, code, out)
				}
			}
			if len(answers) != 3 {
				t.Errorf("there are other answers: %s", out)
			}
		})
	}
}
