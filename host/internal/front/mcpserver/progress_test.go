package mcpserver

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestReportAfterTheAnswer reports what comes after a request was answered: a
// call outlives its request when others wait for it.
func TestReportAfterTheAnswer(t *testing.T) {
	p := &progress{reports: make(chan tool.Progress, 1), sent: make(chan struct{})}
	close(p.sent)
	p.finish()
	p.report(tool.Progress{Progress: 1}) // must not panic
	if _, open := <-p.reports; open {
		t.Error("a report after the answer was taken")
	}
}
