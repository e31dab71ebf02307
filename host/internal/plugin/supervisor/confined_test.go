package supervisor

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
)

func TestConfined(t *testing.T) {
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		t.Fatal(err)
	}
	defer launcher.Close()
	p := unconfined(t)
	opts := Options{Launcher: launcher, StateDir: "/nowhere", Workspace: workspace.Dirs{Shared: t.TempDir()}, Redact: func(text string) string { return strings.ReplaceAll(text, "absent", "(hidden)") }}

	report, err := Confined(t.Context(), opts, p)
	missing, refused := errors.AsType[*sandbox.MissingError](err)
	if !refused || missing.Gap.Layer != sandbox.LayerMounts || err.Error() != noMounts {
		t.Errorf("Confined() = %v, want %s", err, noMounts)
	}
	if len(report.Layers) == 0 || unmet(report) != 2 {
		t.Errorf("the report is %+v, want that of a start without two layers", report)
	}

	p.Confinement.WarnOnMissing = true
	if report, err = Confined(t.Context(), opts, p); err != nil || unmet(report) != 2 {
		t.Errorf("Confined() = %+v, %v, want a start without two layers", report, err)
	}

	p.Path = filepath.Join(filepath.Dir(p.Path), "absent")
	if _, err = Confined(t.Context(), opts, p); err == nil || !strings.Contains(err.Error(), "(hidden): build it, or correct path") {
		t.Errorf("Confined() = %v, want what is wrong with the program, without secrets", err)
	}
}
