package proc_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
)

// BenchmarkTrue runs the program true with this package, with package exec, and with a shell
// that package exec starts, in turn.
func BenchmarkTrue(b *testing.B) {
	program, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		b.Fatal(err)
	}
	ways := []func() error{
		func() error {
			_, err := proc.Run(b.Context(), proc.Command{Path: program})
			return err
		},
		func() error { return exec.Command(program).Run() },
		func() error { return exec.Command(shell, "-c", "true").Run() },
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, run := range ways {
			begun := time.Now()
			if err := run(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begun))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	median := func(i int) float64 { return float64(took[i][len(took[i])/2]) }
	b.ReportMetric(median(0)/1e3, "µs/command")
	b.ReportMetric(median(0)/median(1), "x-exec")
	b.ReportMetric(median(0)/median(2), "x-bash-c")
}
