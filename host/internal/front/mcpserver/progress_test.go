package mcpserver

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestReportAfterTheAnswer reports progress after the request was answered: a call outlives
// its request if others wait for it.
func TestReportAfterTheAnswer(t *testing.T) {
	p := &progress{reports: make(chan tool.Progress, 1), sent: make(chan struct{})}
	close(p.sent)
	p.finish()
	p.report(tool.Progress{Progress: 1}) // must not panic
	if _, open := <-p.reports; open {
		t.Error("a report after the answer was taken")
	}
}

// TestProgressIncreases combines reports of the host and of a tool.
func TestProgressIncreases(t *testing.T) {
	var c counter
	last := -1.0
	for i, tt := range []struct{ progress, total, number, of float64 }{
		{0, 0, 0, 0}, {1, 0, 1, 0}, {2, 0, 2, 0}, // the host counts while a call waits
		{1, 3, 3, 5}, {2, 3, 4, 5}, {3, 3, 5, 5}, // then the tool counts
		{0.25, 1, 6, 6.75}, {0.5, 1, 6.25, 6.75}, // the tool starts again
		{0.5, 1, 7.25, 7.75}, // and reports the same number twice
	} {
		number, total := c.next(tool.Progress{Progress: tt.progress, Total: tt.total})
		if number != tt.number || total != tt.of || number <= last {
			t.Errorf("report %d, %g of %g, becomes %g of %g after %g, want %g of %g", i, tt.progress, tt.total, number, total, last, tt.number, tt.of)
		}
		last = number
	}
}
