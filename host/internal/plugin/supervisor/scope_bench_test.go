package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// BenchmarkScope compares calls of a shared process with calls of processes of each user's own: cold,
// with a start in each call, and warm.
func BenchmarkScope(b *testing.B) {
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := launcher.Close(); err != nil {
			b.Error(err)
		}
	}()
	path := filepath.Join(b.TempDir(), "calm")
	if err := os.Link(testBinary, path); err != nil {
		b.Fatal(err)
	}
	strict := sandbox.Confinement{Isolation: sandbox.Strict}
	for _, scope := range []Scope{Shared, PerUser} {
		s, err := New(Options{
			Plugins:  []Plugin{{Name: "calm", Path: path, Confinement: strict, Limits: sandbox.DefaultLimits(), Scope: scope, MaxInstances: 4}},
			Launcher: launcher, StateDir: b.TempDir(),
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		call := func(user string) {
			_, _, err := s.Run(b.Context(), "calm", "", tool.Call{ID: "tc_1", Tool: "pid", Arguments: []byte(`{}`), Context: tool.Context{User: user}}, tool.Sink{})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.Run("cold/"+scope.String(), func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				for _, ended := range s.manager("calm").stop() {
					<-ended
				}
				b.StartTimer()
				call(fmt.Sprintf("user%d", n))
			}
		})
		call("ada")
		b.Run("warm/"+scope.String(), func(b *testing.B) {
			for b.Loop() {
				call("ada")
			}
		})
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}
}
