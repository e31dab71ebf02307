package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// row is the part of a row of the journal that tests look at.
type row struct {
	Seq              int64
	Kind, Call, Tool string
	User, Status     string
}

// rowsOf asks for rows until there are as many as expected: those of calls that
// change nothing are written a little later.
func rowsOf(t *testing.T, h *httpapitest.Host, path string, want int) []row {
	t.Helper()
	for {
		var rows []row
		ask(t, h, h.Admin, "GET", path, "").into(t, http.StatusOK, &rows)
		if len(rows) >= want {
			return rows
		}
	}
}

func TestJournal(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	for _, token := range []string{h.Agent, h.BobsAgent, h.Agent} {
		ask(t, h, token, "POST", "/v1/calls", `{"tool":"look"}`).into(t, http.StatusOK, &struct{}{})
	}
	all := rowsOf(t, h, "/v1/journal", 3)
	if all[0].Seq < all[2].Seq {
		t.Errorf("rows = %+v, want the newest first", all)
	}
	if oldest := rowsOf(t, h, "/v1/journal?order=oldest&limit=2", 2); len(oldest) != 2 || oldest[0].Seq != all[2].Seq {
		t.Errorf("the oldest two = %+v", oldest)
	}
	if bobs := rowsOf(t, h, "/v1/journal?user=bob&tool=look&status=success", 1); len(bobs) != 1 || bobs[0].User != "bob" {
		t.Errorf("bob's rows = %+v", bobs)
	}
	if before := rowsOf(t, h, "/v1/journal?before=2", 1); len(before) != 1 || before[0].Seq != 1 {
		t.Errorf("rows before 2 = %+v", before)
	}
	if since := rowsOf(t, h, "/v1/journal?since=2999-01-01T00:00:00Z", 0); len(since) != 0 {
		t.Errorf("rows of the future = %+v", since)
	}
	for _, wrong := range []string{"limit=x", "since=yesterday", "order=random", "status=rejectd", "call=ap_1", "colour=red", "before=-1"} {
		name, _, _ := strings.Cut(wrong, "=")
		ask(t, h, h.Admin, "GET", "/v1/journal?"+wrong, "").problem(t, http.StatusBadRequest, name)
	}
	var report struct {
		Rows     int
		Problems []any
	}
	ask(t, h, h.Admin, "GET", "/v1/journal/verify", "").into(t, http.StatusOK, &report)
	if report.Rows != 3 || report.Problems == nil || len(report.Problems) != 0 {
		t.Errorf("the report = %+v, want three rows and no problem", report)
	}
}

func TestJournalTail(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{Configure: func(s *httpapi.Server) { s.SetKeepAlive(time.Millisecond) }})
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`).into(t, http.StatusOK, &struct{}{})
	first := rowsOf(t, h, "/v1/journal", 1)[0]
	tail := func(query string) *bufio.Scanner {
		response, err := http.DefaultTransport.RoundTrip(newRequest(t, h.URL, h.Admin, "GET", "/v1/journal/tail"+query, ""))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return bufio.NewScanner(response.Body)
	}
	next := func(s *bufio.Scanner) (r row) {
		for s.Scan() {
			if s.Text() != "" {
				if err := json.Unmarshal(s.Bytes(), &r); err != nil {
					t.Fatal(err)
				}
				return r
			}
		}
		t.Fatalf("the stream ended: %v", s.Err())
		return r
	}
	fromNow, fromStart := tail(""), tail("?after=0")
	ask(t, h, h.BobsAgent, "POST", "/v1/calls", `{"tool":"look"}`).into(t, http.StatusOK, &struct{}{})
	if r := next(fromNow); r.User != "bob" {
		t.Errorf("from now on comes %+v, want bob's", r)
	}
	if r := next(fromStart); r.Seq != first.Seq {
		t.Errorf("from the start comes %+v, want %+v", r, first)
	}
	if r := next(fromStart); r.User != "bob" {
		t.Errorf("then comes %+v, want bob's", r)
	}
	if err := h.Tokens.Replace(h.TokenList[:1]); err != nil { // without the admin
		t.Fatal(err)
	}
	for fromNow.Scan() { // until the host ends it
	}
}

func TestPlugins(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	var plugins []httpapi.Plugin
	ask(t, h, h.Admin, "GET", "/v1/plugins", "").into(t, http.StatusOK, &plugins)
	if len(plugins) != 1 || plugins[0].Name != "missing" || plugins[0].Tools == nil {
		t.Errorf("plugins = %+v", plugins)
	}
	var one httpapi.Plugin
	ask(t, h, h.Admin, "GET", "/v1/plugins/missing", "").into(t, http.StatusOK, &one)
	if one.Name != "missing" || one.Phase != supervisor.Stopped || one.Sandbox != nil {
		t.Errorf("the plugin = %+v", one)
	}
	ask(t, h, h.Admin, "GET", "/v1/plugins/other", "").problem(t, http.StatusNotFound, "other")
	ask(t, h, h.Admin, "GET", "/v1/plugins/missing?colour=red", "").problem(t, http.StatusBadRequest, "colour")
	ask(t, h, h.Admin, "POST", "/v1/plugins/missing/restart", "").problem(t, http.StatusUnprocessableEntity, "no-such-plugin")
	ask(t, h, h.Admin, "POST", "/v1/plugins/other/restart", "").problem(t, http.StatusNotFound, "other")
	ask(t, h, h.Admin, "POST", "/v1/plugins/missing/restart", `{"force":true}`).problem(t, http.StatusBadRequest, "force")
}

// TestPluginAsJSON holds the shape that docs/rest-api.md promises.
func TestPluginAsJSON(t *testing.T) {
	tools, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "git", Ceiling: tool.SideEffecting, TrustClaims: true}}})
	if err != nil {
		t.Fatal(err)
	}
	schema := json.RawMessage(`{"type":"object","properties":{"create":{"type":"boolean","description":"whether to make one"}}}`)
	withPath := json.RawMessage(`{"type":"object","properties":{"files":{"type":"array","items":{"type":"string"},"description":"files","x-role":"path"}}}`)
	if err := tools.Publish("git", "digest", []tool.Spec{
		{Name: "branch", Description: "Lists branches.", Tier: tool.ReadOnly, InputSchema: schema, TierWhen: []tool.TierRule{{Property: "create", Tier: tool.SideEffecting}}},
		{Name: "log", Description: "Lists commits.", Tier: tool.ReadOnly, InputSchema: withPath},
	}); err != nil {
		t.Fatal(err)
	}
	state := supervisor.State{
		Name: "git", Phase: supervisor.Ready, PID: 7, Isolation: sandbox.Isolated, SettingsSchema: json.RawMessage(`{"type":"object"}`),
		Sandbox: &sandbox.Report{Layers: []string{"rlimits", "caps=0"}, Missing: []sandbox.Gap{
			{Layer: sandbox.LayerLandlock, Reason: "the kernel has none", Remedy: "use another", Required: true},
			{Layer: sandbox.LayerCgroup, Reason: "not delegated"},
		}},
	}
	got, err := json.MarshalIndent(httpapi.NewPlugins([]supervisor.State{state}, tools.Entries(), tools.Refused())[0], "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "name": "git",
 "phase": "ready",
 "since": "0001-01-01T00:00:00Z",
 "pid": 7,
 "calls": 0,
 "crashes": 0,
 "limits": {
  "core": 0
 },
 "isolation": "isolated",
 "isolation_scope": "shared",
 "sandbox": {
  "layers": [
   "rlimits",
   "caps=0"
  ],
  "missing": [
   {
    "layer": "landlock",
    "reason": "the kernel has none",
    "remedy": "use another",
    "required": true
   },
   {
    "layer": "cgroup",
    "reason": "not delegated"
   }
  ]
 },
 "settings_schema": {
  "type": "object"
 },
 "tools": [
  {
   "name": "branch",
   "tier": "read_only",
   "highest_tier": "side_effecting"
  },
  {
   "name": "log",
   "tier": "read_only",
   "roles": {
    "path": [
     "files"
    ]
   }
  }
 ],
 "refused_tools": []
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("a plugin as JSON (-want +got):\n%s", diff)
	}
}

func TestReload(t *testing.T) {
	var failure error
	var asked string
	h := httpapitest.Start(t, httpapitest.Options{Reload: func(_ context.Context, _ string, by auth.Caller, via string) error {
		asked = by.User + " over " + via
		return failure
	}})
	var got struct{ Status string }
	askControl(t, h, h.Key, "POST", "/v1/reload", "").into(t, http.StatusOK, &got)
	if asked != httpapitest.Ann+" over cli" {
		t.Errorf("on the control socket, %s reloads", asked)
	}
	ask(t, h, h.Admin, "POST", "/v1/reload", "").into(t, http.StatusOK, &got)
	if got.Status != "reloaded" {
		t.Errorf("reload = %+v", got)
	}
	if asked != "root over rest" {
		t.Errorf("over HTTP, %s reloads", asked)
	}
	failure = errors.New("config.hcl:3: a mistake")
	ask(t, h, h.Admin, "POST", "/v1/reload", "").problem(t, http.StatusUnprocessableEntity, "config.hcl:3")
}

func TestHandOver(t *testing.T) {
	want := httpapi.Handover{Ephemeral: true, GraceMS: 1500}
	h := httpapitest.Start(t, httpapitest.Options{HandOver: func() httpapi.Handover { return want }})
	var got httpapi.Handover
	askControl(t, h, h.Key, "POST", "/v1/handover", "").into(t, http.StatusOK, &got)
	if got != want {
		t.Errorf("handover = %+v, want %+v", got, want)
	}
}

func TestNew(t *testing.T) {
	_, err := httpapi.New(httpapi.Options{})
	if err == nil || !strings.Contains(err.Error(), "no pipeline") {
		t.Errorf("New without parts = %v, want the name of the first that is missing", err)
	}
}
