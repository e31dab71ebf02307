package metrics_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/toolhost/toolhost/host/internal/state/metrics"
)

// scrape reads the text as Prometheus does, and checks its form.
func scrape(t *testing.T, m *metrics.Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

func TestTools(t *testing.T) {
	m := metrics.New(metrics.Options{})
	m.Executed("fs", "read_file", 10*time.Millisecond)
	m.Ended("fs", "read_file", "success")
	m.Executed("fs", "read_file", 30*time.Millisecond)
	m.Ended("fs", "read_file", "error")
	m.Ended("fs", "write_file", "rejected")
	m.Ended("", "", "error")
	want := []metrics.Tool{
		{Name: metrics.Other, TotalCalls: 1, ErrorCount: 1},
		{Plugin: "fs", Name: "read_file", TotalCalls: 2, SuccessCount: 1, ErrorCount: 1, AverageMS: 20},
		{Plugin: "fs", Name: "write_file", TotalCalls: 1, RejectedCount: 1},
	}
	if diff := cmp.Diff(want, m.Tools()); diff != "" {
		t.Errorf("Tools() (-want +got)\n%s", diff)
	}
}

func TestText(t *testing.T) {
	m := metrics.New(metrics.Options{
		Version: "1.2.3",
		Pending: func() int { return 2 },
		Plugins: func() []metrics.Plugin {
			return []metrics.Plugin{{Name: "fs", Up: true, Crashes: 3, Memory: 4096}, {Name: "git", Memory: -1}}
		},
	})
	m.Executed("fs", "read_file", 20*time.Millisecond)
	m.Ended("fs", "read_file", "success")
	m.Answered("approved", 20*time.Second)
	m.Answered("expired", -time.Second)
	got := scrape(t, m)
	for name, want := range map[string]string{
		"toolhost_tool_calls_total":      `plugin="fs" status="error" tool="read_file" 0, plugin="fs" status="rejected" tool="read_file" 0, plugin="fs" status="success" tool="read_file" 1`,
		"toolhost_call_duration_seconds": `plugin="fs" tool="read_file" 1 of 0.02`,
		"toolhost_approval_wait_seconds": `answer="approved" 1 of 20, answer="expired" 1 of 0`,
		"toolhost_approvals_pending":     `2`,
		"toolhost_plugin_up":             `plugin="fs" 1, plugin="git" 0`,
		"toolhost_plugin_restarts_total": `plugin="fs" 3, plugin="git" 0`,
		"toolhost_plugin_memory_bytes":   `plugin="fs" 4096`,
	} {
		if text := series(got[name]); text != want {
			t.Errorf("%s is %s, want %s", name, text, want)
		}
	}
	if text := series(got["toolhost_build_info"]); !strings.Contains(text, `version="1.2.3"`) || !strings.HasSuffix(text, " 1") {
		t.Errorf("toolhost_build_info is %s", text)
	}
	if got["go_goroutines"] == nil {
		t.Error("there are no figures of the Go runtime")
	}
}

// series writes the series of a family: labels and values, or numbers and sums of histograms.
func series(f *dto.MetricFamily) string {
	var all []string
	for _, m := range f.GetMetric() {
		var words []string
		for _, l := range m.GetLabel() {
			words = append(words, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
		switch h := m.GetHistogram(); {
		case h != nil:
			words = append(words, fmt.Sprintf("%d of %v", h.GetSampleCount(), h.GetSampleSum()))
		case m.Counter != nil:
			words = append(words, fmt.Sprint(m.GetCounter().GetValue()))
		default:
			words = append(words, fmt.Sprint(m.GetGauge().GetValue()))
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}

// TestHostileNames checks that names of tools can neither forge figures nor make them grow without end.
func TestHostileNames(t *testing.T) {
	m := metrics.New(metrics.Options{})
	hostile := "x\"} 1\ntoolhost_forged_total{a=\"\\\xff\u202e"
	m.Ended("mcp", hostile, "success")
	for i := range 2000 {
		m.Ended("mcp", fmt.Sprintf("tool_%d", i), "success")
		m.Executed("mcp", fmt.Sprintf("tool_%d", i), time.Second)
	}
	got := scrape(t, m)
	if got["toolhost_forged_total"] != nil {
		t.Error("a name of a tool has forged a figure")
	}
	calls := 0.0
	for _, c := range got["toolhost_tool_calls_total"].GetMetric() {
		calls += c.GetCounter().GetValue()
	}
	if n := len(got["toolhost_call_duration_seconds"].GetMetric()); n != 501 || calls != 2001 {
		t.Errorf("2001 calls of as many tools make %d tools with %v calls, want 501 with all", n, calls)
	}
	if tools := m.Tools(); tools[0].Name != metrics.Other || tools[0].TotalCalls != 1501 {
		t.Errorf("tools beyond the bound are %+v, want 1501 calls of %s", tools[0], metrics.Other)
	}
}

// TestConcurrent counts and reads at the same time.
func TestConcurrent(t *testing.T) {
	m := metrics.New(metrics.Options{})
	const callers, calls = 8, 1000
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for range calls {
				m.Executed("fs", fmt.Sprintf("tool_%d", c%2), time.Millisecond)
				m.Ended("fs", fmt.Sprintf("tool_%d", c%2), "success")
			}
		})
	}
	all.Go(func() {
		for range 100 {
			m.Tools()
			if _, err := m.Text(); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	for _, of := range m.Tools() {
		if of.TotalCalls != callers*calls/2 || of.AverageMS < 0.99 || of.AverageMS > 1.01 {
			t.Errorf("%+v, want %d calls of 1 ms", of, callers*calls/2)
		}
	}
}

// BenchmarkCall measures what the figures add to a call.
func BenchmarkCall(b *testing.B) {
	m := metrics.New(metrics.Options{})
	b.ReportAllocs()
	for b.Loop() {
		m.Executed("fs", "read_file", time.Millisecond)
		m.Ended("fs", "read_file", "success")
	}
}
