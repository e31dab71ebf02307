package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outputOf runs a shell script as a [Command].
func outputOf(ctx context.Context, script string, timeout time.Duration) (string, error) {
	out, err := Output(ctx, Command{
		Argv: []string{"/bin/sh", "-c", script, "sh"}, Env: []string{"LANG=C.UTF-8"}, Timeout: timeout, MaxOutput: 100,
	})
	return string(out), err
}

// TestOutput: a command gets its arguments and its environment, and nothing else of the host.
func TestOutput(t *testing.T) {
	t.Setenv("TOOLHOST_TEST_SECRET", "x")
	for _, tt := range []struct{ script, want, mistake string }{
		{script: `echo value`, want: "value\n"},
		{script: `echo "${TOOLHOST_TEST_SECRET-none} $LANG"; pwd`, want: "none C.UTF-8\n/\n"},
		{script: `cat; echo end`, want: "end\n"},
		{script: `(: </dev/tty) 2>/dev/null || echo no terminal`, want: "no terminal\n"},
		{script: `ls -l /proc/$$/fd | grep /; echo "these files are open"`, want: "these files are open\n"},
		{script: `sleep 1000 & echo early`, want: "early\n"},
		{script: `head -c 100 /dev/zero | tr '\0' x`, want: strings.Repeat("x", 100)},
		{script: `yes`, mistake: "printed more than 100B"},
		{script: `printf 'no \033[31msuch entry\nmore' >&2; exit 3`, mistake: `ended with exit status 3: no \x1b[31msuch entry`},
		{script: `head -c 1000000 /dev/zero >&2; exit 1`, mistake: "ended with exit status 1: "},
		{script: `kill -9 $$`, mistake: "ended with signal: killed"},
	} {
		got, err := outputOf(t.Context(), tt.script, patience)
		switch {
		case tt.mistake == "" && (err != nil || got != tt.want):
			t.Errorf("%s: Output() = %q, %v, want %q", tt.script, got, err, tt.want)
		case tt.mistake != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.mistake) || got != ""):
			t.Errorf("%s: Output() = %q, %v, want %q", tt.script, got, err, tt.mistake)
		}
	}
	if _, err := Output(t.Context(), Command{Argv: []string{"/nowhere/x"}, Timeout: patience, MaxOutput: 1}); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "was not started: ") {
		t.Errorf("Output() of no program = %v", err)
	}
}

// TestOutputEnds: a command that does not end is killed, with what it has started, in its session or
// in another.
func TestOutputEnds(t *testing.T) {
	canceled, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for name, run := range map[string]func(script string) (string, error){
		"after its time": func(script string) (string, error) { return outputOf(t.Context(), script, time.Second) },
		"with ctx":       func(script string) (string, error) { return outputOf(canceled, script, patience) },
	} {
		dir := t.TempDir()
		pids := filepath.Join(dir, "pids")
		script := `sleep 1000 & echo $! >` + pids + `; setsid sleep 1000 & echo $! >>` + pids + `; touch ` + dir + `/begun; wait`
		if name == "with ctx" {
			go func() { // ends with the file, or with the test
				for tick := time.Tick(5 * time.Millisecond); ; <-tick {
					if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil || t.Context().Err() != nil {
						cancel(errors.New("was canceled"))
						return
					}
				}
			}()
		}
		_, err := run(script)
		if want := map[string]string{"after its time": "did not end within 1s", "with ctx": "was canceled"}[name]; err == nil || err.Error() != want {
			t.Errorf("%s: Output() = %v, want %q", name, err, want)
		}
		text, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			ended := func() bool {
				stat, err := os.ReadFile("/proc/" + field + "/stat")
				return err != nil || strings.Contains(string(stat), ") Z ")
			}
			deadline := time.Now().Add(patience)
			for tick := time.Tick(5 * time.Millisecond); !ended() && time.Now().Before(deadline); {
				<-tick
			}
			if !ended() {
				t.Errorf("%s: process %d still runs", name, pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}
