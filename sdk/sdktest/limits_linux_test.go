package sdktest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestLimits(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	// Memory has room for the race detector, and processes for the user's other programs, so
	// that the plugin starts.
	_, options := fixture("sdk")
	options.Limits = Limits{Memory: 4 * tool.GiB, FileSize: tool.MiB, OpenFiles: 100, Processes: own.Cur - 1}
	p := StartBinary(t, os.Args[0], options)
	pid := p.process.cmd.Process.Pid
	for resource, want := range map[int]uint64{
		unix.RLIMIT_DATA: 4 << 30, unix.RLIMIT_FSIZE: 1 << 20, unix.RLIMIT_NOFILE: 100, unix.RLIMIT_NPROC: own.Cur - 1,
	} {
		var got unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &got); err != nil || got.Cur != want || got.Max != want {
			t.Errorf("resource %d is limited to %+v, %v, want %d", resource, got, err, want)
		}
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || !strings.Contains(string(environ), "\x00GOMEMLIMIT=3382286744\x00") {
		t.Errorf("the environment is %q, %v, want four fifths of what 64 MiB leave as GOMEMLIMIT", environ, err)
	}
}

func TestLimitsMistakes(t *testing.T) {
	binary, options := fixture("sdk")
	for _, tt := range []struct {
		target Target
		limits Limits
		want   string
	}{
		{binary, Limits{FileSize: -1}, "file_size is limited to -1 bytes"},
		{binary, Limits{Memory: 100 * tool.MiB}, "memory is limited to 100MiB, expected 192MiB or more"},
		{InProcess(sample()), Limits{OpenFiles: 100}, "start a binary"},
	} {
		options.Limits = tt.limits
		if p, err := tt.target.launch(t.Context(), options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("launch with %+v = %v, %v, want %q", tt.limits, p, err, tt.want)
		}
	}
}
