// Package metrics counts the calls of each tool since the host started, and writes these figures and
// those of plugins and approvals for Prometheus.
//
// No figure names a user, a session or a path, and the number of tools that are told apart is bounded:
// what calls and plugins do cannot make the figures grow without end.
package metrics

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxTools bounds the tools that are counted apart. Further ones, as of a plugin that names its tools
// anew with each start, are counted as [Other].
const maxTools = 500

// Other is the name, without a plugin, under which calls are counted of tools that do not exist, and
// of those beyond the bound.
const Other = "other"

// The outcomes of calls.
const (
	success  = "success"
	failed   = "error"
	rejected = "rejected"
)

// Options say where a [Metrics] reads what it does not count itself. It asks at each scrape.
type Options struct {
	// Version is that of the host.
	Version string
	// Plugins returns the plugins; nil means that there are none.
	Plugins func() []Plugin
	// Pending returns how many approvals wait for a person; nil means none.
	Pending func() int
}

// Metrics counts. Its methods may be called from any goroutine.
type Metrics struct {
	opts     Options
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	waits    *prometheus.HistogramVec
	writing  sync.Mutex // held by Text

	mu    sync.RWMutex // guards tools
	tools map[name]*figures
}

// name identifies a tool.
type name struct{ plugin, tool string }

// figures are those of one tool.
type figures struct {
	success, failed, rejected prometheus.Counter
	duration                  prometheus.Histogram
}

// Tool is what the host counted about one tool since it started.
type Tool struct {
	Plugin string `json:"plugin"`
	Name   string `json:"tool_name"`
	// TotalCalls is the sum of the three counts.
	TotalCalls    uint64 `json:"total_calls"`
	SuccessCount  uint64 `json:"success_count"`
	ErrorCount    uint64 `json:"error_count"`
	RejectedCount uint64 `json:"rejected_count"`
	// AverageMS is how long the tool worked on a call that reached it, without the time in which
	// people decided; 0 if no call reached it.
	AverageMS float64 `json:"avg_execution_time_ms"`
}

// New returns figures that start at zero.
func New(opts Options) *Metrics {
	m := &Metrics{
		opts: opts, registry: prometheus.NewRegistry(), tools: make(map[name]*figures),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "toolhost_tool_calls_total", Help: "Calls that ended, by outcome: success, error or rejected.",
		}, []string{"plugin", "tool", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "toolhost_call_duration_seconds", Help: "Time that tools worked on calls, without the time in which people decided.",
			Buckets: []float64{.001, .005, .01, .025, .1, .25, 1, 2.5, 10, 30, 120, 600},
		}, []string{"plugin", "tool"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "toolhost_approval_wait_seconds", Help: "Time from a question to its answer, by answer: approved, rejected, or expired without one.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600},
		}, []string{"answer"}),
	}
	m.registry.MustRegister(m.calls, m.duration, m.waits, newScrape(opts),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "toolhost_build_info", Help: "Always 1; its labels are the versions of the host and of Go.",
		ConstLabels: prometheus.Labels{"version": opts.Version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(build)
	return m
}

// Ended counts a call that ended with a status: "success", "error" or "rejected". Without a tool,
// there was none of the name that the caller gave.
func (m *Metrics) Ended(plugin, tool, status string) {
	switch f := m.of(plugin, tool); status {
	case success:
		f.success.Inc()
	case rejected:
		f.rejected.Inc()
	default:
		f.failed.Inc()
	}
}

// Executed counts how long a tool worked on a call.
func (m *Metrics) Executed(plugin, tool string, took time.Duration) {
	m.of(plugin, tool).duration.Observe(took.Seconds())
}

// Answered counts how long a question waited for its answer, "approved" or "rejected", or until it
// "expired" without one.
func (m *Metrics) Answered(answer string, waited time.Duration) {
	m.waits.WithLabelValues(answer).Observe(max(waited, 0).Seconds()) // the clock may have been set back
}

// of returns the figures of a tool.
func (m *Metrics) of(plugin, toolName string) *figures {
	key := name{plugin, toolName}
	if toolName == "" {
		key = name{tool: Other}
	}
	m.mu.RLock()
	f := m.tools[key]
	m.mu.RUnlock()
	if f != nil {
		return f
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.tools[key]; !known && len(m.tools) >= maxTools {
		key = name{tool: Other}
	}
	if m.tools[key] == nil {
		m.tools[key] = m.start(key)
	}
	return m.tools[key]
}

// start begins to count a tool. The counters of all outcomes exist from the start: Prometheus sees
// no increase of a counter that appears with the value 1.
func (m *Metrics) start(of name) *figures {
	plugin, toolName := label(of.plugin), label(of.tool)
	duration, _ := m.duration.WithLabelValues(plugin, toolName).(prometheus.Histogram) // as all of a HistogramVec
	return &figures{
		success:  m.calls.WithLabelValues(plugin, toolName, success),
		failed:   m.calls.WithLabelValues(plugin, toolName, failed),
		rejected: m.calls.WithLabelValues(plugin, toolName, rejected),
		duration: duration,
	}
}

// label returns a name as it may be a label: the names of tools come from plugins and their servers.
func label(name string) string { return tool.VisibleName(name) }

// Tools returns what was counted about each tool, sorted by plugin and tool.
func (m *Metrics) Tools() []Tool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]Tool, 0, len(m.tools))
	for of, f := range m.tools {
		t := Tool{
			Plugin: of.plugin, Name: of.tool,
			SuccessCount: count(f.success), ErrorCount: count(f.failed), RejectedCount: count(f.rejected),
		}
		t.TotalCalls = t.SuccessCount + t.ErrorCount + t.RejectedCount
		if h := read(f.duration).GetHistogram(); h.GetSampleCount() > 0 {
			t.AverageMS = h.GetSampleSum() / float64(h.GetSampleCount()) * 1000
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Tool) int {
		return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func count(c prometheus.Counter) uint64 { return uint64(read(c).GetCounter().GetValue()) }

// read returns the value of a metric.
func read(m prometheus.Metric) *dto.Metric {
	var value dto.Metric
	_ = m.Write(&value) // fails for metrics without a value only
	return &value
}
