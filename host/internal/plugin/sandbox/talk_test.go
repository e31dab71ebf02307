package sandbox

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// A launcher's notices may come from a broken process.
func TestTalkReadsNotices(t *testing.T) {
	report := `{"done":{"landlock":3}}` + "\n"
	for _, tt := range []struct {
		name, notices, want string
		is                  error
	}{
		{"executed", report, "", nil},
		{"died", "", "ended before it reported", errNoReport},
		{"refused", `{"failure":{"text":"no such limit","errno":1}}`, "no such limit", syscall.EPERM},
		{"not executed", report + `{"failure":{"text":"exec format error","errno":8,"exec":true}}`, "exec format error", syscall.ENOEXEC},
		{"reported twice", report + report, "reported twice", nil},
		{"empty", "{}", "is empty", nil},
		{"garbage", "panic: oh\n", "read the launcher's report", nil},
		{"garbage after the report", report + "panic", "read the launcher's report", nil},
		{"endless", `{"done":{"no_loopback":"` + strings.Repeat("x", launch.MaxNotices), "read the launcher's report", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			orderR, orderW := osPipe(t)
			reportR, reportW := osPipe(t)
			talk := talk{order: orderW, report: reportR}
			defer talk.close()
			sent := make(chan struct{})
			go func() { // ends when all is sent or talk is closed
				defer close(sent)
				_, _ = reportW.WriteString(tt.notices)
				reportW.Close()
			}()
			got, err := talk.run([]byte("order"))
			talk.close()
			<-sent
			orderR.Close()
			if tt.want == "" {
				if err != nil || got.Landlock != 3 {
					t.Errorf("run() = %v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("run() = %v, %v, want %q", got, err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("run() = %v, which is not %v", err, tt.is)
			}
		})
	}
}

func osPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}
