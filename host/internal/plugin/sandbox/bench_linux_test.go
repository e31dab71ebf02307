package sandbox

import (
	"os"
	"os/exec"
	"testing"
)

// BenchmarkStart compares a program's whole life with and without a launcher. The difference is
// the start of the launcher, that is, of the test program.
func BenchmarkStart(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("launcher", func(b *testing.B) {
		l := newLauncher(b)
		binary, err := os.Open("/bin/true")
		if err != nil {
			b.Fatal(err)
		}
		defer binary.Close()
		for b.Loop() {
			proc, err := l.Launch(b.Context(), Profile{Binary: binary, Path: "/bin/true", Limits: DefaultLimits()})
			if err != nil {
				b.Fatal(err)
			}
			<-proc.Done()
			proc.closeStdio()
		}
	})
}
