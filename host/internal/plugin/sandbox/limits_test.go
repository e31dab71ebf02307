package sandbox

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestLimitsString(t *testing.T) {
	for _, tt := range []struct {
		limits Limits
		want   string
	}{
		{Limits{}, "core 0B"},
		{DefaultLimits(), "memory 512MiB, open_files 256, file_size 256MiB, stack 8MiB, core 0B"},
		{
			Limits{Processes: 64, Core: tool.MiB, CPUTime: time.Minute, AddressSpace: 4 * tool.GiB},
			"processes 64, core 1MiB, cpu_time 1m0s, address_space 4GiB",
		},
	} {
		if got := tt.limits.String(); got != tt.want {
			t.Errorf("String() = %q, want %q", got, tt.want)
		}
	}
}
