package pipeline_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestExplainPathsOutside checks that an explanation names the paths that the plugin will refuse:
// those outside of the workspace that its sandbox does not grant.
func TestExplainPathsOutside(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "away"), filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	spec := addSpec()
	spec.Tier, spec.HasPreview = tool.ReadOnly, false
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"files":{"type":"array","description":"files","x-role":"path","items":{"type":"string"}}}}`)
	h := newHost(t, pipeline.Options{Runner: &counter{}, Roots: []string{ws}, Policy: rules(t, policy.Options{
		Reach: map[string][]string{"test": {filepath.Join(dir, "granted")}},
		Paths: policy.Paths{Forbidden: []policy.PathRule{{Pattern: "**/secret"}}},
	})}, spec)
	refuses := func(what string) string {
		return "the plugin test probably refuses " + what + ": it is outside of the workspace"
	}
	for _, tt := range []struct {
		name    string
		files   []string
		verdict policy.Verdict
		want    []string
	}{
		{"in the workspace", []string{"a", "sub/b", ws}, policy.Allow, nil},
		{"granted by the sandbox", []string{filepath.Join(dir, "granted", "a")}, policy.Allow, nil},
		{"above", []string{"a", "../x\u202e"}, policy.Allow, []string{refuses(`"../x\u202e"`)}},
		{"elsewhere, twice", []string{"/usr/a", "/usr/a"}, policy.Allow, []string{refuses("/usr/a")}},
		{"through a link", []string{"link/a"}, policy.Allow, []string{refuses("link/a, which leads to " + dir + "/away/a")}},
		{"forbidden by the policy, which says so itself", []string{"../secret"}, policy.Deny, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			arguments, err := json.Marshal(map[string]any{"files": tt.files})
			if err != nil {
				t.Fatal(err)
			}
			got, err := h.Explain(request("add", string(arguments)))
			if err != nil || got.Verdict != tt.verdict {
				t.Fatalf("Explain = %+v, %v; want %v", got, err, tt.verdict)
			}
			if diff := cmp.Diff(tt.want, got.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
