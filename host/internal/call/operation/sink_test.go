package operation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestProgressNumbers mixes the host's reminders with reports of the tool.
func TestProgressNumbers(t *testing.T) {
	remind := tool.Progress{Progress: -1} // marks a reminder
	of := func(progress, total float64) tool.Progress { return tool.Progress{Progress: progress, Total: total} }
	for _, tt := range []struct {
		name     string
		in, want []tool.Progress
	}{
		{"the tool alone", []tool.Progress{of(0, 3), of(1, 3), of(3, 3)}, []tool.Progress{of(0, 3), of(1, 3), of(3, 3)}},
		{"the host alone", []tool.Progress{remind, remind, remind}, []tool.Progress{of(1, 0), of(2, 0), of(3, 0)}},
		{"then a tool that counts", []tool.Progress{remind, remind, of(1, 0), remind, of(2, 0)}, []tool.Progress{of(1, 0), of(2, 0), of(3, 0), of(4, 0), of(5, 0)}},
		{
			"then a tool with a total",
			[]tool.Progress{remind, remind, remind, remind, of(1, 4), of(4, 4)},
			[]tool.Progress{of(1, 0), of(2, 0), of(3, 0), of(4, 0), of(28, 100), of(100, 100)},
		},
		{"then a fraction", []tool.Progress{remind, remind, of(0.5, 1)}, []tool.Progress{of(1, 0), of(2, 0), of(51, 100)}},
		{"a silent tool with a total", []tool.Progress{of(50, 100), remind, of(60, 100)}, []tool.Progress{of(50, 100), of(50.5, 100), of(60, 100)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s sink
			var got []tool.Progress
			s.to.Progress = func(p tool.Progress) { got = append(got, p) }
			for _, p := range tt.in {
				if p == remind {
					s.remind("")
				} else {
					s.report(p)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a long wait", func(t *testing.T) {
		var s sink
		last := 0.0
		for range 360 { // an hour
			last = s.remind("").Progress
		}
		for done := range 10 {
			p := s.report(of(float64(done+1), 10))
			if p.Progress <= last || p.Progress > p.Total {
				t.Errorf("after %v comes %v of %v", last, p.Progress, p.Total)
			}
			last = p.Progress
		}
	})
}
