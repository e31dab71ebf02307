//go:build !race

package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
)

// The plugin is a separate process here, which the race detector slows down.

// After kill -9 a file has wholly the old or wholly the new content, and the next process
// removes the remains. In the control, which writes in place, it has neither.
func TestKilledWhileWriting(t *testing.T) {
	torn := 0
	for n := 0; torn == 0; n++ {
		if n == crashBound {
			t.Fatalf("the control was not torn in %d rounds, so the test shows nothing", n)
		}
		dir := filetest.Tree(t, map[string]string{"f": crashContent("a")})
		killed(t, "control", false, dir)
		data, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(data); text != crashContent("a") && text != crashContent("b") {
			torn++
		}
	}
	for _, how := range []string{"write_file", "edit_file", "apply_patch", "move_file"} {
		t.Run(how, func(t *testing.T) { killOften(t, how) })
	}
}

// If any system call fails during a change, no file is half written and nothing is lost: the
// files are as before, or as intended. In the latter case the error says so, and it names the
// files that could not be put back if the disk keeps failing. The control writes in place and
// leaves a file that is neither.
func TestDiskFails(t *testing.T) {
	scene := faultScene{dir: t.TempDir()}
	scene.other = elsewhere(t, scene.dir)
	in, do := startFaulty(t, scene.dir, scene.other)
	for _, tt := range faultCases() {
		for _, lasting := range []bool{false, true} {
			name := tt.name + " from one moment on"
			if !lasting {
				name = tt.name + " once"
			}
			t.Run(name, func(t *testing.T) {
				torn, seen := 0, map[string]int{}
				for n := 1; ; n++ {
					scene.reset(t)
					in.arm(n, lasting, unix.EIO)
					how := do(tt.name)
					failed := in.disarm()
					if len(failed) == 0 {
						break
					}
					seen[failed[0]]++
					if err := tt.broken(t, scene, how, failed, lasting); err != nil && tt.name == faultControl {
						torn++
					} else if err != nil {
						t.Errorf("%s as call %d: %v\nthe tool said %q", failed, n, err, how)
					}
				}
				if tt.name == faultControl && torn == 0 {
					t.Error("the control was not torn, so the test shows nothing")
				}
				if syncs := seen["fsync"] + seen["syncfs"]; syncs != tt.syncs || seen["open"] == 0 && tt.name != faultControl {
					t.Errorf("the calls that failed were %v, want %d that make durable, and some opens", seen, tt.syncs)
				}
			})
		}
	}
}
