package metrics

import (
	"bytes"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// Plugin is the state of one plugin.
type Plugin struct {
	Name string
	// Up reports that the plugin takes calls: it runs, or the next call starts it.
	Up bool
	// Crashes is the number of crashes since the host started.
	Crashes int
	// Memory is the resident memory of its processes and of all that they started, in bytes; -1 if it is
	// not known.
	Memory int64
}

// ContentType is the media type of [Metrics.Text].
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text returns all figures in the text format of Prometheus.
//
// One text is written at a time: it reads what the system knows of every process.
func (m *Metrics) Text() ([]byte, error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	families, err := m.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather the metrics: %w", err)
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, fmt.Errorf("write the metric %s: %w", family.GetName(), err)
		}
	}
	return text.Bytes(), nil
}

// scrape collects what other parts of the host know, at the time of a scrape.
type scrape struct {
	opts                          Options
	pending, up, restarts, memory *prometheus.Desc
}

var _ prometheus.Collector = (*scrape)(nil)

func newScrape(opts Options) *scrape {
	of := []string{"plugin"}
	return &scrape{
		opts:     opts,
		pending:  prometheus.NewDesc("toolhost_approvals_pending", "Questions that wait for a person.", nil, nil),
		up:       prometheus.NewDesc("toolhost_plugin_up", "1 if the plugin takes calls: it runs, or the next call starts it. 0 if it hangs, or has crashed and may not start yet.", of, nil),
		restarts: prometheus.NewDesc("toolhost_plugin_restarts_total", "Crashes after which the plugin had to start again.", of, nil),
		memory:   prometheus.NewDesc("toolhost_plugin_memory_bytes", "Resident memory of the plugin's processes, with those that they started.", of, nil),
	}
}

// Describe implements [prometheus.Collector].
func (s *scrape) Describe(all chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.pending, s.up, s.restarts, s.memory} {
		all <- d
	}
}

// Collect implements [prometheus.Collector].
func (s *scrape) Collect(all chan<- prometheus.Metric) {
	if s.opts.Pending != nil {
		all <- prometheus.MustNewConstMetric(s.pending, prometheus.GaugeValue, float64(s.opts.Pending()))
	}
	if s.opts.Plugins == nil {
		return
	}
	for _, p := range s.opts.Plugins() {
		up := 0.0
		if p.Up {
			up = 1
		}
		all <- prometheus.MustNewConstMetric(s.up, prometheus.GaugeValue, up, label(p.Name))
		all <- prometheus.MustNewConstMetric(s.restarts, prometheus.CounterValue, float64(p.Crashes), label(p.Name))
		if p.Memory >= 0 {
			all <- prometheus.MustNewConstMetric(s.memory, prometheus.GaugeValue, float64(p.Memory), label(p.Name))
		}
	}
}
