package sdk_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
)

func TestOnStop(t *testing.T) {
	p := sdk.New("stops", "1.0.0")
	with[struct{}](spec("x"))(p)
	var ran []string
	note := func(name string) func() { return func() { ran = append(ran, name) } }
	sdk.Configure(p, func(context.Context, sdk.Config, struct{}) error {
		p.OnStop(note("first"))
		p.OnStop(func() { panic("on purpose") })
		p.OnStop(note("last"))
		return nil
	})
	for range 2 {
		running := sdktest.Start(t, p, sdktest.Options{})
		if len(ran) > 0 {
			t.Errorf("%q ran while the plugin did", ran)
		}
		running.Close()
		if want := []string{"last", "first"}; !slices.Equal(ran, want) {
			t.Errorf("on stop %q ran, want %q", ran, want)
		}
		ran = nil
	}
}

// TestOnStopIsBounded shows that a function that never ends does not keep the
// process.
func TestOnStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sdk.New("stops", "1.0.0")
		release := make(chan struct{})
		p.OnStop(func() { <-release })
		begun := time.Now()
		p.Stop()
		if took := time.Since(begun); took != time.Second {
			t.Errorf("Stop takes %v, want %v", took, time.Second)
		}
		close(release)
	})
}

// TestOnStopInProcess shows that the functions run when the host ends.
func TestOnStopInProcess(t *testing.T) {
	directory := t.TempDir()
	running := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{fixtureVariable + "=stops"}, Config: sdk.Config{StateDir: directory},
	})
	running.Close()
	if _, err := os.Stat(filepath.Join(directory, "closed")); err != nil {
		t.Errorf("what was to be written on stop is not there: %v", err)
	}
}

func stopsPlugin() *sdk.Plugin {
	p := sdk.New("stops", "1.0.0")
	with[struct{}](spec("x"))(p)
	sdk.Configure(p, func(_ context.Context, cfg sdk.Config, _ struct{}) error {
		p.OnStop(func() {
			if err := os.WriteFile(filepath.Join(cfg.StateDir, "closed"), nil, 0o600); err != nil {
				p.Logger().Error("write", "error", err)
			}
		})
		return nil
	})
	return p
}
