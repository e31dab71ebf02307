package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

// secret is a text that the log of these tests redacts.
const secret = "hunter2"

// logTo returns a log that writes lines without a time.
func logTo(w io.Writer) *pluginLog {
	return newPluginLog(hclog.New(&hclog.LoggerOptions{Output: w, Level: hclog.Trace, DisableTime: true}),
		func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") })
}

func TestLogLines(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"hclog", `{"@level":"warn","@message":"disk is full","@module":"fs","@timestamp":"x","free":3,"dir":"/x"}`, "[WARN]  disk is full: plugin.dir=/x plugin.free=3\n"},
		{"a field that poses as the host's", `{"@level":"info","@message":"hi","plugin":"fs"}`, "[INFO]  hi: plugin.plugin=fs\n"},
		{"a secret", `{"@level":"info","@message":"key hunter2","hunter2":"hunter2","list":["hunter2"]}`, `[INFO]  key [redacted]: plugin.[redacted]=[redacted] plugin.list="[\"[redacted]\"]"` + "\n"},
		{"a secret as text", "key hunter2", "[DEBUG] key [redacted]: stream=stderr\n"},
		{"text", "listening", "[DEBUG] listening: stream=stderr\n"},
		{"a panic", "panic: boom", "[ERROR] panic: boom: stream=stderr\n"},
		{"other JSON", `{"level":"info"}`, `[DEBUG] {"level":"info"}: stream=stderr` + "\n"},
		// go-plugin's own parser panics at these two.
		{"a message that is no text", `{"@level":"info","@message":1}`, `[DEBUG] {"@level":"info","@message":1}: stream=stderr` + "\n"},
		{"a level that is no text", `{"@level":{},"@message":"m"}`, `[DEBUG] {"@level":{},"@message":"m"}: stream=stderr` + "\n"},
		{"control characters", "a\x1b[31m\x00b\u202Ec\u2028d\xff", "[DEBUG] a[31mbcd\uFFFD: stream=stderr\n"},
		{"two lines in a message", `{"@level":"error","@message":"one\n2026 [ERROR] two"}`, "[ERROR] one 2026 [ERROR] two\n"},
		{"nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			logTo(&out).stderr([]byte(tt.line))
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("stderr(%q) logs (-want +got):\n%s", tt.line, diff)
			}
		})
	}
}

// TestLogOfCrash logs the report of a crash as errors, but not all that a program writes after it.
func TestLogOfCrash(t *testing.T) {
	var out bytes.Buffer
	log := logTo(&out)
	for _, line := range []string{"before", "panic: boom", "", "goroutine 7 [running]:", `{"@level":"info","@message":"meanwhile"}`} {
		log.stderr([]byte(line))
	}
	for i := range 2 * crashLines {
		log.stderr(fmt.Appendf(nil, "line %d", i))
	}
	log.stderr([]byte("Traceback (most recent call last):"))
	log.stderr([]byte("  File"))
	want := []string{"[DEBUG] before", "[ERROR] panic: boom", "[ERROR] goroutine 7 [running]:", "[INFO]  meanwhile"}
	for i := range 2 * crashLines {
		level := "ERROR"
		if i >= crashLines-1 { // one line was the goroutine's
			level = "DEBUG"
		}
		want = append(want, fmt.Sprintf("[%s] line %d", level, i))
	}
	want = append(want, "[ERROR] Traceback (most recent call last):", "[ERROR]   File")
	got := strings.Split(strings.ReplaceAll(strings.TrimSpace(out.String()), ": stream=stderr", ""), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

func TestLogBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := logTo(&out)
		for i := range 1000 {
			log.stdout(fmt.Appendf(nil, "line %d", i))
		}
		if got, want := strings.Count(out.String(), "line "), logRate; got != want {
			t.Errorf("%d of 1000 lines at once are logged, want %d", got, want)
		}
		out.Reset()
		<-time.After(2 * time.Second)
		for i := range 1000 {
			log.stderr(fmt.Appendf(nil, "line %d", i))
		}
		if got, want := strings.Count(out.String(), "line "), logRate; got != want {
			t.Errorf("%d of 1000 lines are logged two seconds later, want %d", got, want)
		}
		log.flush()
		dropped := 0
		for line := range strings.Lines(out.String()) {
			if _, n, found := strings.Cut(line, "left out: lines="); found {
				var count int
				if _, err := fmt.Sscan(n, &count); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				dropped += count
			}
		}
		// One was noted at once, before the buffer was reset.
		if want := 2*1000 - 2*logRate - 1; dropped != want {
			t.Errorf("the log says that %d lines were left out, want %d:\n%s", dropped, want, out.String())
		}
		out.Reset()
		log.flush()
		if out.Len() > 0 {
			t.Errorf("flush() without dropped lines logs %q", out.String())
		}
	})
}

func TestEachLine(t *testing.T) {
	long := strings.Repeat("x", maxLogLine+100)
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"lines", "a\nb\r\n\nc", []string{"a", "b", "", "c"}},
		{"nothing", "", nil},
		{"a long line", long + "\nb\n", []string{long[:maxLogLine], "b"}},
		{"a long line at the end", "a\n" + long, []string{"a", long[:maxLogLine]}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			eachLine(bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(tt.in)), 16), func(line []byte) { got = append(got, string(line)) })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("eachLine(%.20q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func FuzzLogLine(f *testing.F) {
	f.Add([]byte(`{"@level":"warn","@message":"m","k":[1,{"a":null}]}`))
	f.Add([]byte("\x1b]0;title\x07"))
	f.Add([]byte(`{"@level":1,"@message":{}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var out bytes.Buffer
		log := logTo(&out)
		log.stderr(line)
		log.stdout(line)
		if strings.Count(out.String(), "\n") > 2 || strings.ContainsAny(out.String(), "\x1b\x07\r\u202E") || !utf8.Valid(out.Bytes()) {
			t.Errorf("line %q logs %q", line, out.String())
		}
	})
}
