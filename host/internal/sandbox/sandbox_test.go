package sandbox_test

import (
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Reexec()
	if hostile, ok := hostiles[os.Getenv("HOSTILE")]; ok {
		hostile()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var hostiles = map[string]func(){}

func newLauncher(t *testing.T) *sandbox.Launcher {
	t.Helper()
	l, err := sandbox.NewLauncher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestLaunch(t *testing.T) {
	l := newLauncher(t)
	sh, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer sh.Close()
	p, err := l.Launch(t.Context(), sandbox.Profile{
		Binary: sh,
		Path:   "/bin/sh",
		Args:   []string{"-c", "setsid sleep 1000 & echo started"},
		Limits: sandbox.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout)
	if err != nil || string(out) != "started\n" {
		t.Errorf("stdout = %q, %v", out, err)
	}
	if exit := p.Exit(); !exit.State.Success() || exit.Strays != 1 {
		t.Errorf("Exit() = %+v, want success and one stray", exit)
	}
}
