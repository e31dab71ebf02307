package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// oneMiBPerDay enables the shell plugin, for a user with a quota.
const oneMiBPerDay = `
auth { local_user = "ada" }
group "dev" {
  users           = ["ada"]
  network_per_day = "1MiB"
}
plugin "shell" {
  tier   = "privileged"
  claims = "trust"
  sandbox {
    isolation = "strict"
    filesystem { exec = ["system"] }
    network {
      mode    = "proxy"
      allow   = ["www.example.com"]
      private = true
    }
  }
  tool "shell_exec" { approval = "allow" }
}
`

// TestNetworkPerDay: the bytes of a user count over all calls, and when the quota of the user's group is
// used up, connections end and the next ones are refused, with the reason.
func TestNetworkPerDay(t *testing.T) {
	clientPrograms(t)
	if !inOwnNetwork(t, webSite) {
		return
	}
	const size = 700 << 10
	web := serveSites(t, map[string]http.Handler{webSite: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	})})
	h := serve(t, writeConfig(t, listening+oneMiBPerDay))
	get := func() string {
		return asJSON(h.post(t, "shell_exec", map[string]any{"command": "curl -sS -o /dev/null -w 'got %{size_download} with %{http_code}' http://" + webSite + "/; exit 0"}))
	}
	if got := get(); !strings.Contains(got, fmt.Sprintf("got %d with 200", size)) {
		t.Errorf("control: the first download says %s", got)
	}
	const reason = "the user has transferred 1MiB in a day, which is the quota; there is more in 2"
	if got := get(); strings.Contains(got, fmt.Sprintf("got %d", size)) {
		t.Errorf("the second download, beyond the quota, says %s", got)
	}
	if got := get(); !strings.Contains(got, "with 403") || !strings.Contains(got, reason) {
		t.Errorf("a download without quota says %s", got)
	}
	if n := len(web.of(webSite)); n != 2 {
		t.Errorf("the site got %d requests, want 2", n)
	}
	refused := 0
	for _, row := range h.journal(t, "--limit", "100") {
		if row.Kind == "connection" && row.Status == "rejected" && row.User == "ada" && strings.Contains(row.Error, reason) {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("the journal has %d connections that the quota ended or refused, want 2", refused)
	}
}
