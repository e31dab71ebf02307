package clientfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/front/clientfile"
)

type server struct {
	Command string `json:"command"`
}

func TestJSON(t *testing.T) {
	edit := clientfile.JSON([]string{"mcpServers", "toolhost"}, server{"/ä b/toolhost"})
	const fresh = "{\n  \"mcpServers\": {\n    \"toolhost\": {\n      \"command\": \"/ä b/toolhost\"\n    }\n  }\n}\n"
	for _, tt := range []struct{ name, old, want string }{
		{"missing or empty", "", fresh},
		{"white space", " \n", fresh},
		{"null", "null\n", fresh},
		{"byte order mark", "\ufeff{}\n", "\ufeff" + fresh},
		{"null servers", "{\n  \"mcpServers\": null\n}\n", fresh},
		{"CRLF", "{\r\n}\r\n", strings.ReplaceAll(fresh, "\n", "\r\n")},
		{
			"comments, trailing commas, tabs, another server", "// top\n{\n\t\"mcpServers\": {\n\t\t\"é\": {}, // kept\n\t},\n\t\"x\": 1.50\n}\n",
			"// top\n{\n\t\"mcpServers\": {\n\t\t\"é\": {}, // kept\n\t\t\"toolhost\": {\n\t\t\t\"command\": \"/ä b/toolhost\"\n\t\t},\n\t},\n\t\"x\": 1.50\n}\n",
		},
		{
			"a comment after the last server", "{\n  \"mcpServers\": {\n    \"a\": {} // kept\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {}, // kept\n    \"toolhost\": {\n      \"command\": \"/ä b/toolhost\"\n    }\n  }\n}\n",
		},
		{"the same name", "{\n  \"mcpServers\": {\n    \"toolhost\": {\"url\": \"x\"}\n  }\n}\n", fresh},
		{"the same entry", `{"mcpServers":{"toolhost":{"command":"/ä b/toolhost"}}}`, `{"mcpServers":{"toolhost":{"command":"/ä b/toolhost"}}}`},
		{"one line", `{"a": 12345678901234567890}`, "{\"a\": 12345678901234567890,\n  \"mcpServers\": {\n    \"toolhost\": {\n      \"command\": \"/ä b/toolhost\"\n    }\n  }\n}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := edit([]byte(tt.old))
			if err != nil {
				t.Fatalf("JSON: %v", err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
	for old, want := range map[string]string{
		"{\n  \"a\": }":       "line 2",
		"[]":                  `expected an object that holds "mcpServers"`,
		`{"mcpServers": [1]}`: `expected an object that holds "toolhost"`,
		"{} {}":               "line 1",
	} {
		if got, err := edit([]byte(old)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("JSON(%s) = %s, %v, want %q", old, got, err, want)
		}
	}
}

func TestTOML(t *testing.T) {
	const entry = "[mcp_servers.toolhost]\ncommand = \"/ä b\""
	edit := clientfile.TOML("mcp_servers", "toolhost", entry)
	for _, tt := range []struct{ name, old, want string }{
		{"missing", "", entry + "\n"},
		{"no final newline", "a = 1", "a = 1\n\n" + entry + "\n"},
		{"CRLF", "# c\r\na = 1\r\n", "# c\r\na = 1\r\n\r\n[mcp_servers.toolhost]\r\ncommand = \"/ä b\"\r\n"},
		{
			"the same name, with comments and other tables", "a = 1 # one\n\n[mcp_servers.\"toolhost\"]\nurl = \"x\"\n[mcp_servers.toolhost.env]\nA = \"b\"\n\n# next\n[mcp_servers.z]\nurl = \"z\"\n",
			"a = 1 # one\n\n" + entry + "\n\n# next\n[mcp_servers.z]\nurl = \"z\"\n",
		},
		{"the same entry", "[mcp_servers]\ntoolhost = { command = \"/ä b\" }\n", "[mcp_servers]\ntoolhost = { command = \"/ä b\" }\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := edit([]byte(tt.old))
			if err != nil {
				t.Fatalf("TOML: %v", err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("TOML (-want +got):\n%s", diff)
			}
		})
	}
	for old, want := range map[string]string{
		"a = 1\nb = \n": "line 2",
		"mcp_servers = { a = { url = \"x\" } }\n":                             "table of its own",
		"[mcp_servers.\"toolhost.x\"]\nurl = \"x\"\n[mcp_servers.toolhost]\n": "table of its own",
		"[mcp_servers]\ntoolhost = { url = \"x\" }\n":                         "table of its own",
		"mcp_servers = 1\n": `expected an object that holds "toolhost"`,
		"a = '''\n[mcp_servers.toolhost]\n'''\n[mcp_servers.toolhost]\nb = 1": "table of its own",
	} {
		if got, err := edit([]byte(old)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("TOML(%s) = %s, %v, want %q", old, got, err, want)
		}
	}
}

// TestWrite keeps mode, symbolic links and every backup.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real ü.json"), filepath.Join(dir, "link.json")
	if err := errors.Join(os.WriteFile(target, []byte("1"), 0o640), os.Chmod(target, 0o640), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{target + ".bak", target + ".bak.1"} {
		c, err := clientfile.Plan(link, 0o600, clientfile.Only(i+2))
		if err != nil {
			t.Fatalf("Plan: %v", err)
		}
		if backup, err := c.Write(); err != nil || backup != want {
			t.Fatalf("Write = %q, %v, want %q", backup, err, want)
		}
	}
	if got, _ := os.ReadFile(target + ".bak"); string(got) != "1" {
		t.Errorf("the first backup = %q, want 1", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode() != 0o640 {
		t.Errorf("the file is %v, %v, want mode 0640", info, err)
	}
	c, err := clientfile.Plan(target, 0o600, clientfile.Only(9))
	if err := errors.Join(err, os.WriteFile(target, []byte("other"), 0o640)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(); !errors.Is(err, clientfile.ErrChanged) {
		t.Errorf("Write after another change = %v, want ErrChanged", err)
	}
	c, err = clientfile.Plan(filepath.Join(dir, "new", "f.json"), 0o600, clientfile.Only(1))
	if err != nil || !c.Needed() {
		t.Fatalf("Plan of a missing file: %v", err)
	}
	if backup, err := c.Write(); err != nil || backup != "" {
		t.Errorf("Write of a missing file = %q, %v", backup, err)
	}
}

func TestPlanRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo, dangling, large := filepath.Join(dir, "fifo"), filepath.Join(dir, "dangling"), filepath.Join(dir, "large")
	err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink("nowhere", dangling), os.WriteFile(large, make([]byte, clientfile.MaxSize+1), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "not a regular file", fifo: "not a regular file", "/dev/null": "not a regular file",
		dangling: "link to a file that does not exist", large: "more than 8388608 bytes",
	} {
		if _, err := clientfile.Plan(path, 0o600, clientfile.Only(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Plan(%s) = %v, want %q", path, err, want)
		}
	}
}

// TestOwner keeps the owner of a file that root changes.
func TestOwner(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = 65534, 65533
	}
	file := filepath.Join(t.TempDir(), "f.json")
	if err := errors.Join(os.WriteFile(file, []byte("1"), 0o640), os.Chown(file, uid, gid)); err != nil {
		t.Fatal(err)
	}
	c, err := clientfile.Plan(file, 0o600, clientfile.Only(2))
	if err != nil {
		t.Fatal(err)
	}
	backup, err := c.Write()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, backup} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if stat := info.Sys().(*syscall.Stat_t); int(stat.Uid) != uid || int(stat.Gid) != gid {
			t.Errorf("%s belongs to %d:%d, want %d:%d", path, stat.Uid, stat.Gid, uid, gid)
		}
	}
}

// TestDiff shows what changes with three lines of context, and no token.
func TestDiff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.json")
	old := "1\n2\n3\n4\n5\nAuthorization: bearer old-secret\n6\n7\n8\n9\n"
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := clientfile.Plan(file, 0o600, func(old []byte) ([]byte, error) {
		return []byte(strings.Replace(string(old), "bearer old-secret", `{"Bearer th_new"}`, 1)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "--- " + file + "\n+++ " + file + "\n@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-Authorization: bearer (hidden)\n+Authorization: {\"Bearer (hidden)\"}\n 6\n 7\n 8\n"
	if diff := cmp.Diff(want, c.Diff()); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
}
