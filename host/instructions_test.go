package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestInstructionsComeFromTheConfiguration checks the instructions for models and the titles
// of tools.
func TestInstructionsComeFromTheConfiguration(t *testing.T) {
	t.Parallel()
	eachClient(t, fsBlock, func(t *testing.T, connected func(*mcp.ClientOptions) *session) {
		t.Helper()
		s := connected(nil)
		told := s.InitializeResult().Instructions
		for _, want := range []string{"relative to the workspace " + string(filepath.Separator), "call_wait", "result_read", "No tool has a network."} {
			if !strings.Contains(told, want) {
				t.Errorf("the instructions lack %q: %s", want, told)
			}
		}
		if len(told) > 600+len(t.TempDir()) { // about 150 tokens
			t.Errorf("the instructions have %d bytes: %s", len(told), told)
		}
		for listed, err := range s.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if listed.Title == "" || strings.Contains(listed.Title, "_") {
				t.Errorf("the title of %s is %q", listed.Name, listed.Title)
			}
		}
	})
}
