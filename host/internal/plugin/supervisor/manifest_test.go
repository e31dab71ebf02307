package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// names of the published tools of a plugin.
func (k *kept) names(plugin string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for _, spec := range k.published[plugin] {
		names = append(names, spec.Name)
	}
	return names
}

func TestToolsAreKnownWithoutAStart(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	settings := `{"color":"red"}`
	calm := Plugin{
		Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(),
		Settings: func([]byte) ([]byte, error) { return []byte(settings), nil },
	}
	start := func() *kept {
		t.Helper()
		k := keepIn(t, stateDir, calm)
		if err := k.Start(t.Context()); err != nil {
			t.Fatalf("Start() = %v", err)
		}
		if diff := cmp.Diff(testTools, k.names("calm")); diff != "" {
			t.Errorf("published tools (-want +got):\n%s", diff)
		}
		return k
	}
	started := func(k *kept, want bool) {
		t.Helper()
		s := k.state(t, "calm")
		if got := s.PID != 0; got != want {
			t.Errorf("the plugin was started: %v, want %v", got, want)
		}
		if s.Version != "1.2.3" || len(s.Digest) != 64 {
			t.Errorf("state is %+v, want version and digest", s)
		}
	}
	started(start(), true)
	k := start()
	started(k, false)
	k.mustCall(t, "calm", "echo")

	settings = `{"color":"blue"}`
	started(start(), true)
	started(start(), false)

	rebuild(t, calm.Path)
	started(start(), true)

	path := manifestPath(stateDir, "calm")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the manifest's mode is %v (%v), want 0600", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte(`{"file":`), 0o600); err != nil {
		t.Fatal(err)
	}
	started(start(), true) // a manifest that was cut counts as none
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestSoundToolsAreKnown checks that only tools that this program has found sound are published
// as sound without a start.
func TestSoundToolsAreKnown(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	calm := Plugin{Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()}
	start := func(unsound, want bool) {
		t.Helper()
		k := keepIn(t, stateDir, calm)
		k.unsound = unsound
		if err := k.Start(t.Context()); err != nil {
			t.Fatalf("Start() = %v", err)
		}
		if k.known != want {
			t.Errorf("the tools were published as sound: %v, want %v", k.known, want)
		}
	}
	start(true, false) // the first start
	start(true, false)
	start(false, false) // finds them sound
	start(false, true)

	path := manifestPath(stateDir, "calm")
	saved, err := loadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	saved.Sound.Ino++ // another program has found them sound
	if err := saved.save(path); err != nil {
		t.Fatal(err)
	}
	start(false, false)
	start(false, true)
}

func TestManifestRoundTrip(t *testing.T) {
	want := &manifest{
		File: process.FileID{Dev: 1, Ino: 2, Size: 3, Mode: 4, UID: 5, Mtime: 6, Ctime: 7}, Digest: "abc", Version: "1", Schema: []byte("{}"), Settings: "def",
		Sound: process.FileID{Ino: 8},
		Tools: []tool.Spec{{Name: "a", Tier: tool.Privileged, InputSchema: []byte(`{"type":"object"}`), TierWhen: []tool.TierRule{{Property: "p", Equals: []byte(`1`), Tier: tool.ReadOnly}}}},
	}
	path := manifestPath(t.TempDir(), "p")
	if m, err := loadManifest(path); m != nil || err != nil {
		t.Errorf("loadManifest() of none = %v, %v", m, err)
	}
	if err := want.save(path); err != nil {
		t.Fatal(err)
	}
	got, err := loadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the manifest changed (-want +got):\n%s", diff)
	}
	want.Tools[0].Tier = 99 // cannot be written
	if err := want.save(path); err == nil || !strings.Contains(err.Error(), "tier 99") {
		t.Errorf("save() = %v, want that the tier is not valid", err)
	}
	if again, err := loadManifest(path); err != nil || again.Tools[0].Tier != tool.Privileged {
		t.Errorf("the old manifest is gone: %v, %v", again, err)
	}
}

// TestPinIsNotBelievedFromTheCache forges what an earlier host has learned: the
// digest of the pinned program for another one.
func TestPinIsNotBelievedFromTheCache(t *testing.T) {
	stateDir := t.TempDir()
	pin := strings.Repeat("0", 64)
	p := Plugin{Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, SHA256: pin, Limits: sandbox.DefaultLimits()}
	forged := &manifest{File: process.LookAt(p.Path), Digest: pin, Version: "1", Schema: []byte("{}"), Settings: digest.Of("{}"), Tools: []tool.Spec{{Name: "echo", Tier: tool.ReadOnly}}}
	if err := forged.save(manifestPath(stateDir, "calm")); err != nil {
		t.Fatal(err)
	}
	if _, known := KnownSchema(stateDir, p); known {
		t.Error("KnownSchema() believes it")
	}
	k := keepIn(t, stateDir, p)
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := k.names("calm"); len(got) > 0 {
		t.Errorf("the tools %v are published", got)
	}
	_, err := k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "not the one that was pinned", false)
}

// TestManifestOfANewProgram saves the tools of a program that has just been built, whose file
// could still change unseen. Once it is older, it is hashed only once more.
func TestManifestOfANewProgram(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	p := Plugin{Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()}
	program, err := process.OpenProgram(p.Path, "", new(process.Hashes))
	if err != nil {
		t.Fatal(err)
	}
	program.Close()
	path := manifestPath(stateDir, "calm")
	settings, err := evaluate(p, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	saved := &manifest{Digest: program.Digest, Version: "1", Schema: []byte("{}"), Settings: conditionsOf(&p, settings)}
	if err := saved.save(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program has not changed for a while", program.ID.Settled)
	file := func() process.FileID {
		t.Helper()
		m, err := loadManifest(path)
		if err != nil {
			t.Fatal(err)
		}
		return m.File
	}
	if _, known := KnownSchema(stateDir, p); !known || file() != (process.FileID{}) {
		t.Errorf("KnownSchema() knows the program: %v; the manifest is of %+v, want it unchanged", known, file())
	}
	k := keepIn(t, stateDir, p)
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pid := k.state(t, "calm").PID; pid != 0 || file() != program.ID {
		t.Errorf("process %d was started, and the manifest is of %+v; want none and %+v", pid, file(), program.ID)
	}
}
