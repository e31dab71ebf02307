package httpapi_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// Requests every route with every kind of credential. For a credential with the role, a row
// expects the route's answer to this request, which names nothing that exists. So a missing
// check of the role would show.
func TestRoutes(t *testing.T) {
	const ok, none, wrong, no = http.StatusOK, http.StatusNotFound, http.StatusBadRequest, http.StatusForbidden
	rows := []struct {
		method, path, body string
		// The status for an agent, an approver, an admin and the approver's key
		// on the control socket.
		agent, approver, admin, key int
	}{
		{"POST", "/v1/calls", `{"tool":"look"}`, ok, no, no, no},
		{"GET", "/v1/calls", "", ok, no, ok, ok},
		{"GET", "/v1/calls/tc_x", "", none, no, none, none},
		{"POST", "/v1/calls/tc_x/cancel", "", none, no, none, none},
		{"GET", "/v1/caller", "", ok, ok, ok, ok},
		{"GET", "/v1/openapi.json", "", ok, ok, ok, ok},
		{"GET", "/v1/tools", "", ok, ok, ok, ok},
		{"GET", "/v1/tools/look", "", ok, ok, ok, ok},
		{"POST", "/v1/explain", `{"tool":"look"}`, ok, ok, ok, ok},
		{"GET", "/v1/events?types=nonsense", "", wrong, wrong, wrong, wrong},
		{"POST", "/v1/mcp/relay", "", none, no, no, no},
		{"POST", "/mcp", "", none, no, no, no}, // this server has no MCP
		{"GET", "/mcp", "", none, no, no, no},
		{"DELETE", "/mcp", "", none, no, no, no},
		{"POST", "/mcp/x", "", none, no, no, no},
		{"GET", "/mcp/x", "", none, no, no, no},
		{"DELETE", "/mcp/x", "", none, no, no, no},
		{"GET", "/v1/approvals", "", no, ok, ok, ok},
		{"GET", "/v1/approvals/ap_x", "", no, none, none, none},
		{"POST", "/v1/approvals/ap_x/approve", "", no, none, no, none},
		{"POST", "/v1/approvals/ap_x/reject", "", no, none, no, none},
		{"POST", "/v1/logins", "", no, http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusServiceUnavailable}, // this server has no pages
		{"DELETE", "/v1/logins", "", no, ok, ok, ok},
		{"GET", "/v1/grants", "", no, ok, ok, ok},
		{"DELETE", "/v1/grants/gr_x", "", no, none, none, none},
		{"POST", "/v1/grants/gr_x/confirm", `{"basis":"sha256:0"}`, no, none, no, none},
		{"GET", "/v1/secrets", "", ok, ok, ok, ok},
		{"PUT", "/v1/secrets/x", `{"value":"a"}`, no, none, none, none},
		{"DELETE", "/v1/secrets/x", "", no, none, none, none},
		{"GET", "/v1/plugins", "", no, no, ok, ok},
		{"GET", "/v1/plugins/x", "", no, no, none, none},
		{"POST", "/v1/plugins/x/restart", "", no, no, none, none},
		{"GET", "/v1/plugins/x/definitions", "", no, no, none, none},
		{"POST", "/v1/plugins/x/definitions/accept", `{"digest":"sha256:0"}`, no, no, none, none},
		{"POST", "/v1/notifiers/x/test", "", no, no, none, none},
		{"GET", "/v1/stops", "", no, no, ok, ok},
		{"POST", "/v1/stops", `{"user":"nobody"}`, no, no, ok, ok},
		{"DELETE", "/v1/stops/st_x", "", no, no, none, none},
		{"GET", "/v1/tokens", "", no, no, ok, ok},
		{"POST", "/v1/tokens/x/revoke", "", no, no, http.StatusUnprocessableEntity, http.StatusUnprocessableEntity}, // this host cannot
		{"GET", "/v1/journal", "", no, no, ok, ok},
		{"GET", "/v1/usage", "", no, no, ok, ok},
		{"GET", "/v1/network", "", no, no, ok, ok},
		{"GET", "/v1/metrics", "", no, no, ok, ok},
		{"GET", "/metrics", "", no, no, ok, ok},
		{"GET", "/v1/journal/tail?after=x", "", no, no, wrong, wrong},
		{"GET", "/v1/journal/verify", "", no, no, ok, ok},
		{"POST", "/v1/reload", "", no, no, http.StatusUnprocessableEntity, http.StatusUnprocessableEntity},
		{"POST", "/v1/handover", "", no, no, none, http.StatusUnprocessableEntity},   // not available over the network
		{"GET", "/.well-known/oauth-protected-resource", "", none, none, none, none}, // this server has no issuer
		{"GET", "/.well-known/oauth-protected-resource/mcp", "", none, none, none, none},
		{"GET", "/.well-known/oauth-protected-resource/mcp/x", "", none, none, none, none},
		{"GET", "/healthz", "", ok, ok, ok, ok},
		{"GET", "/readyz", "", ok, ok, ok, ok},
	}
	for _, row := range rows {
		h := httpapitest.Start(t, httpapitest.Options{}) // a new one: tokens that do not count wear its patience out
		public := row.path == "/healthz" || row.path == "/readyz" || strings.HasPrefix(row.path, "/.well-known/")
		anonymous := http.StatusUnauthorized
		if public {
			anonymous = row.agent
		}
		// Tokens count on the control socket for clients that are relayed.
		agentThere, approverThere := anonymous, anonymous
		if row.path == "/v1/mcp/relay" {
			agentThere, approverThere = row.agent, row.approver
		}
		monitor := no
		switch {
		case public:
			monitor = row.agent
		case strings.HasSuffix(row.path, "/metrics"):
			monitor = ok
		}
		unknown := "th_" + strings.Repeat("A", 49)
		for _, tt := range []struct {
			who, token string
			control    bool
			want       int
		}{
			{"nobody", "", false, anonymous},
			{"an unknown token", unknown, false, anonymous},
			{"an agent", h.Agent, false, row.agent},
			{"a foreign agent", h.BobsAgent, false, row.agent},
			{"an approver", h.Approver, false, row.approver},
			{"an admin", h.Admin, false, row.admin},
			{"a monitor", h.Monitor, false, monitor},
			{"the approver's key over the network", h.Key, false, anonymous},
			{"the control socket", "", true, row.agent},
			{"the approver's key on the control socket", h.Key, true, row.key},
			{"an agent's token on the control socket", h.Agent, true, agentThere},
			{"an approver's token on the control socket", h.Approver, true, approverThere},
			{"an unknown token on the control socket", unknown, true, anonymous},
		} {
			via := ask
			if tt.control {
				via = askControl
			}
			got := via(t, h, tt.token, row.method, row.path, row.body)
			if got.status != tt.want {
				t.Errorf("%s %s by %s = %d, want %d: %s", row.method, row.path, tt.who, got.status, tt.want, got.body)
			}
			if got.status >= 400 && !public {
				got.problem(t, got.status, "")
			}
			if got.status == http.StatusForbidden && !strings.Contains(string(got.body), "role") {
				t.Errorf("%s %s by %s does not name the role: %s", row.method, row.path, tt.who, got.body)
			}
		}
		h.Stop()
	}

	// The rows are those of the server.
	var listed, served []string
	for _, row := range rows {
		path, _, _ := strings.Cut(row.path, "?")
		path = strings.NewReplacer("tc_x", "{id}", "ap_x", "{id}", "gr_x", "{id}", "st_x", "{id}", "/plugins/x", "/plugins/{name}", "/tokens/x", "/tokens/{name}", "/notifiers/x", "/notifiers/{name}", "/secrets/x", "/secrets/{name}", "tools/look", "tools/{name}", "/mcp/x", "/mcp/{toolset}").Replace(path)
		listed = append(listed, row.method+" "+path)
	}
	for _, r := range httpapi.Routes() {
		served = append(served, r.Method+" "+r.Path)
	}
	slices.Sort(listed)
	slices.Sort(served)
	if !slices.Equal(listed, served) {
		t.Errorf("the test asks for\n%s\nand the server serves\n%s", strings.Join(listed, "\n"), strings.Join(served, "\n"))
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	ask(t, h, "", "GET", "/", "").problem(t, http.StatusUnauthorized, "no token")
	ask(t, h, h.Agent, "GET", "/v1//calls", "").problem(t, http.StatusNotFound, "no /v1//calls")
	ask(t, h, h.Agent, "GET", "/v1/../v1/calls", "").problem(t, http.StatusNotFound, "")
	ask(t, h, h.Agent, "GET", "/v1/calls/", "").problem(t, http.StatusNotFound, "")
	ask(t, h, h.Agent, "GET", "/mcp/x/y", "").problem(t, http.StatusNotFound, "below /v1/, and /mcp")
	ask(t, h, h.Agent, "GET", "/v2/calls", "").problem(t, http.StatusNotFound, "/v2/calls")
	ask(t, h, "", "PUT", "/v1/calls", "").problem(t, http.StatusUnauthorized, "no token")
	got := ask(t, h, h.Agent, "PUT", "/v1/calls", "")
	got.problem(t, http.StatusMethodNotAllowed, "PUT")
	if allow := got.header.Get("Allow"); allow != "POST, GET" {
		t.Errorf("Allow = %q, want POST, GET", allow)
	}
	if got := ask(t, h, h.Agent, "HEAD", "/v1/tools", ""); got.status != http.StatusOK || len(got.body) != 0 {
		t.Errorf("HEAD = %d with %d bytes", got.status, len(got.body))
	}
}

func TestHealth(t *testing.T) {
	ready := make(chan struct{})
	h := httpapitest.Start(t, httpapitest.Options{Ready: ready})
	var health httpapi.Health
	ask(t, h, "", "GET", "/readyz", "").into(t, http.StatusServiceUnavailable, &health)
	if health.Status != "starting" {
		t.Errorf("readyz says %+v, want starting", health)
	}
	close(ready)
	ask(t, h, "", "GET", "/readyz", "").into(t, http.StatusOK, &health)
	ask(t, h, "", "GET", "/healthz", "").into(t, http.StatusOK, &health)
	if health.Status != "ok" || health.Journal != journal.Verified {
		t.Errorf("healthz says %+v, want ok, with a journal that was checked", health)
	}
	if health.URL != "" {
		t.Errorf("healthz says over HTTP that it is reached at %s", health.URL)
	}
	askControl(t, h, "", "GET", "/healthz", "").into(t, http.StatusOK, &health)
	if health.URL != h.URL {
		t.Errorf("healthz says on the control socket that HTTP is reached at %q, want %s", health.URL, h.URL)
	}
}

// Every route has its heading in the documentation, with the roles that it
// needs, and the documentation has no other.
func TestRoutesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/rest-api.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	sections := strings.Split(string(text), "\n### ")
	for _, section := range sections[1:] {
		heading, body, _ := strings.Cut(section, "\n\n")
		documented[heading], _, _ = strings.Cut(body, ".")
	}
	for _, r := range httpapi.Routes() {
		heading := r.Method + " " + r.Path
		roles := "Role: " + strings.Join(r.Roles, ", ")
		switch len(r.Roles) {
		case 0:
			roles = "No credential"
		case 3:
			roles = "Role: any"
		}
		if got, ok := documented[heading]; !ok || !strings.HasPrefix(got, roles) {
			t.Errorf("docs/rest-api.md says %q of %s, want %q", got, heading, roles)
		}
		delete(documented, heading)
	}
	for heading := range documented {
		t.Errorf("docs/rest-api.md documents %s, which does not exist", heading)
	}
}
