package clientfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/clientfile"
)

// planned returns the change of a file with this content.
func planned(t *testing.T, text string, mode fs.FileMode, edit clientfile.Edit) *clientfile.Change {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	c, err := clientfile.Plan(file, 0o600, edit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDiffHidesSecrets(t *testing.T) {
	entry := map[string]any{"url": "http://127.0.0.1:7780/mcp", "headers": map[string]any{"Authorization": "Bearer th_s3cret"}}
	for name, text := range map[string]string{
		"beside the entry":    "{\n  \"mcpServers\": {\n    \"a\": {\"env\": {\"x\": \"s3cret\", \"y\": 1}, \"args\": [\"s3cret\"]}\n  }\n}\n",
		"in the old entry":    "{\"mcpServers\": {\"toolhost\": {\n\"env\": {\"GITHUB_TOKEN\": \"s3cret\"},\n\"headers\": {\"X-Api-Key\":\"s3\\\"s3cret\", \"Authorization\": \"Basic s3cret\"},\n\"args\": [\"th_s3cret\"]}}}\n",
		"with an escape":      "{\"mcpServers\": {\"toolhost\": {\"a\": [\"Bearer\\u0020s3cret\"]}}}\n",
		"after an apostrophe": "{\n  // don't\n  \"key\": \"s3cret\",\n  // isn't\n  \"mcpServers\": {}\n}\n",
		"after a single line": "{\"key\": \"s3cret\", \"mcpServers\": {}}\n",
	} {
		diff := planned(t, text, 0o600, clientfile.JSON([]string{"mcpServers", "toolhost"}, entry)).Diff()
		if strings.Contains(diff, "s3cret") || !strings.Contains(diff, "(hidden)") || !strings.Contains(diff, `"url": "http://127.0.0.1:7780/mcp"`) {
			t.Errorf("%s: the diff is\n%s", name, diff)
		}
	}
	table := "[mcp_servers.toolhost]\ncommand = \"t\"\n"
	diff := planned(t, "[mcp_servers.a.env]\nx = 's3cret'\n\n[mcp_servers.toolhost]\nbearer_token = 's3cret'\n", 0o600, clientfile.TOML("mcp_servers", "toolhost", table)).Diff()
	if strings.Contains(diff, "s3cret") || !strings.Contains(diff, `+command = "t"`) {
		t.Errorf("the diff is\n%s", diff)
	}
}

// TestPrivate checks that only the owner reads a file that gets a token, and a backup.
func TestPrivate(t *testing.T) {
	for _, secret := range []bool{false, true} {
		c := planned(t, "1\n", 0o644, clientfile.Only(2))
		want := fs.FileMode(0o644)
		if secret {
			want = 0o600
			if !c.Private() {
				t.Error("a file that others read does not count as wide")
			}
		}
		backup, err := c.Write()
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]fs.FileMode{c.Path: want, backup: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("with a token %v, %s has mode %v, %v; want %v", secret, path, info.Mode(), err, want)
			}
		}
	}
	c := planned(t, "2\n", 0o644, clientfile.Only(2))
	if c.Needed() || !c.Private() || !c.Needed() {
		t.Error("a file with its new content that others may read needs no change")
	}
}

func TestDeepFiles(t *testing.T) {
	edit := clientfile.JSON([]string{"a"}, 1)
	for name, deep := range map[string]string{
		"arrays":  strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000),
		"objects": strings.Repeat(`{"a":`, 500_000) + "1" + strings.Repeat("}", 500_000),
		"open":    strings.Repeat("[", 1_000_000),
	} {
		if _, err := edit([]byte(`{"b":` + deep + "}")); err == nil || !strings.Contains(err.Error(), "deeper than 1000 levels") {
			t.Errorf("%s: %v, want that it is too deep", name, err)
		}
	}
	brackets := strings.Repeat("[{", 2000)
	for name, text := range map[string]string{
		"in a text":             `{"b": "\"` + brackets + `"}`,
		"in a comment":          "{ // " + brackets + "\n}",
		"in a comment with end": "{ /* " + brackets + " */ }",
		"in a last comment":     "{} // " + brackets,
	} {
		if _, err := edit([]byte(text)); err != nil {
			t.Errorf("brackets %s: %v", name, err)
		}
	}
}
