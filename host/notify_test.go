package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testprogram"
)

// TestNotifyRecipes runs each script of docs/notifications.md against a server on loopback, with a
// message whose texts are hostile.
func TestNotifyRecipes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(name); err != nil && os.Getenv("CI") != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
	page, err := os.ReadFile("../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	const summary = `A call of @/etc/passwd (plugin "fs") for <!channel> & 'ada' waits`
	message, err := json.Marshal(map[string]any{"type": "approval.waiting", "data": map[string]string{"summary": summary, "url": "https://tools.example.com/approvals/ap_1"}})
	if err != nil {
		t.Fatal(err)
	}
	var path, body string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		path, body = r.Method+" "+r.URL.Path+" "+r.Header.Get("Click")+r.Header.Get("Authorization"), string(text)
	}))
	defer server.Close()
	dir := t.TempDir()
	mail := filepath.Join(dir, "mail")
	for name, text := range map[string]string{"url": server.URL + "/hook\n", "token": "a-token\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sendmail := "#!/bin/sh\necho \"$@\" > \"" + mail + "\"\ncat >> \"" + mail + "\"\n"
	if err := testprogram.Write(filepath.Join(dir, "sendmail"), strings.NewReader(sendmail)); err != nil {
		t.Fatal(err)
	}
	wants := map[string]struct {
		args       []string
		path, body string
	}{
		"notify-ntfy":   {[]string{server.URL + "/topic"}, "POST /topic https://tools.example.com/approvals/ap_1", summary},
		"notify-mail":   {[]string{"ada@example.com"}, "", "-i ada@example.com\nTo: ada@example.com\nSubject: [toolhost] " + summary + "\n"},
		"notify-chat":   {[]string{filepath.Join(dir, "url")}, "POST /hook ", `for &lt;!channel&gt; &amp; 'ada' waits https://tools.example.com/approvals/ap_1`},
		"notify-teams":  {[]string{filepath.Join(dir, "url")}, "POST /hook ", `A call of @/etc/passwd \\(plugin \"fs\"\\) for \\<!channel\\> & 'ada' waits`},
		"notify-matrix": {[]string{server.URL, "room", filepath.Join(dir, "token")}, "PUT /_matrix/client/v3/rooms/room/send/m.room.message/ap_1 Bearer a-token", `for <!channel> & 'ada' waits https://`},
	}
	scripts := regexp.MustCompile("(?s)```sh\n(#!/bin/sh\n# (notify-[a-z]+) .*?)```").FindAllStringSubmatch(string(page), -1)
	if len(scripts) != len(wants) {
		t.Fatalf("docs/notifications.md has %d scripts, want %d", len(scripts), len(wants))
	}
	for _, script := range scripts {
		name, want := script[2], wants[script[2]]
		path, body = "", ""
		cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", script[1], name}, want.args...)...)
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "TOOLHOST_SUMMARY=" + summary, "TOOLHOST_LINK=https://tools.example.com/approvals/ap_1", "TOOLHOST_MESSAGE=ap_1"}
		cmd.Stdin = strings.NewReader(string(message))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
			continue
		}
		if want.path == "" {
			text, err := os.ReadFile(mail)
			if err != nil {
				t.Error(err)
			}
			body = string(text)
		} else if !json.Valid([]byte(body)) && name != "notify-ntfy" {
			t.Errorf("%s sends %s, which is not JSON", name, body)
		}
		if path != want.path || !strings.Contains(body, want.body) {
			t.Errorf("%s sends %q %s, want %q and %s", name, path, body, want.path, want.body)
		}
	}
}
