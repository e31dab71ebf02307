package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
)

func TestMetrics(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	var all []metrics.Tool
	ask(t, h, h.Monitor, "GET", "/v1/metrics", "").into(t, http.StatusOK, &all)
	if len(all) != 0 {
		t.Errorf("before the first call, the metrics are %+v", all)
	}
	for _, body := range []string{`{"tool":"look_it"}`, `{"tool":"look","arguments":{"text":7}}`, `{"tool":"look","arguments":{"no":1}}`, `{"tool":"\u0000/etc/passwd"}`} {
		if got := ask(t, h, h.Agent, "POST", "/v1/calls", body); got.status != http.StatusOK {
			t.Fatalf("POST %s = %d: %s", body, got.status, got.body)
		}
	}
	ask(t, h, h.Monitor, "GET", "/v1/metrics", "").into(t, http.StatusOK, &all)
	for i := range all {
		if (all[i].AverageMS > 0) != (all[i].SuccessCount > 0) {
			t.Errorf("%+v: a tool that worked takes time, and no other", all[i])
		}
		all[i].AverageMS = 0
	}
	want := []metrics.Tool{
		{Name: "other", TotalCalls: 1, ErrorCount: 1},
		{Plugin: "test", Name: "look", TotalCalls: 3, SuccessCount: 2, ErrorCount: 1},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("the metrics (-want +got)\n%s", diff)
	}

	got := ask(t, h, h.Monitor, "GET", "/metrics", "")
	if kind := got.header.Get("Content-Type"); got.status != http.StatusOK || kind != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("GET /metrics = %d, %s", got.status, kind)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(got.body)))
	if err != nil {
		t.Fatalf("%v in\n%s", err, got.body)
	}
	if pending := families["toolhost_approvals_pending"].GetMetric(); len(pending) != 1 || pending[0].GetGauge().GetValue() != 0 {
		t.Errorf("toolhost_approvals_pending is %v, want 0", pending)
	}
	for _, line := range []string{
		`toolhost_tool_calls_total{plugin="test",status="success",tool="look"} 2`,
		`toolhost_tool_calls_total{plugin="",status="error",tool="other"} 1`,
	} {
		if !strings.Contains(string(got.body), line+"\n") {
			t.Errorf("GET /metrics lacks %s:\n%s", line, got.body)
		}
	}
}
