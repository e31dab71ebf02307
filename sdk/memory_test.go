package sdk

import (
	"runtime/debug"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestMemoryLimitIsNotRaised: a lower limit that a host has set with GOMEMLIMIT stays.
func TestMemoryLimitIsNotRaised(t *testing.T) { // not parallel: it is the process's limit
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, tt := range []struct{ host, want tool.ByteSize }{
		{102 * tool.MiB, 102 * tool.MiB},
		{tool.GiB, 192 * tool.MiB / 10 * 8},
	} {
		debug.SetMemoryLimit(int64(tt.host))
		if mistakes := New("memory", "1").configure(t.Context(), Config{MemoryLimit: 192 * tool.MiB}, nil); len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		if got := tool.ByteSize(debug.SetMemoryLimit(-1)); got != tt.want {
			t.Errorf("with a limit of %v before, the collector's is %v, want %v", tt.host, got, tt.want)
		}
	}
}
