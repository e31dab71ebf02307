//go:build !race

package supervisor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// held is what a supervisor may leave behind.
type held struct {
	descriptors, goroutines, children, groups, runs int
	heap                                            tool.ByteSize
}

// hold counts what the supervisor has now.
func (k *kept) hold(t *testing.T) (h held) {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	h.descriptors, h.goroutines, h.runs = len(descriptors), runtime.NumGoroutine(), k.leftovers(t)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, _ := os.ReadFile(path) // it may have ended
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && strings.HasPrefix(rest[2:], fmt.Sprint(os.Getpid(), " ")) {
			h.children++
		}
	}
	// There may be no control groups. The launcher names those that it makes.
	own := fmt.Sprintf("toolhost.%d.", os.Getpid())
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path, own) {
			h.groups++
		}
		return nil
	})
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	h.heap = tool.ByteSize(memory.HeapAlloc) - k.log.size()
	return h
}

// within reports whether h has nothing that before had not, but for what comes and goes by itself.
func (h held) within(before held) bool {
	return h.descriptors <= before.descriptors+2 && h.goroutines <= before.goroutines+4 && h.children <= before.children &&
		h.groups <= before.groups && h.runs <= before.runs
}

// lives returns how many processes have crashed, and how many have started.
func (k *kept) lives() (crashes, starts int) {
	for _, s := range k.Plugins() {
		crashes += s.Crashes
	}
	return crashes, strings.Count(k.log.String(), "plugin started")
}

// How much memory a process of the test's plugin may have, and how much the host may have for a plugin's
// user while calls run.
const (
	maxProcess = 17 * tool.MiB
	maxPerUser = 64 * tool.KiB
)

// TestTeamUnderLoad is TestUsersUnderLoad with five plugins, for ten minutes if all rounds are asked
// for. It counts what is left while the supervisor still runs, and bounds the memory.
func TestTeamUnderLoad(t *testing.T) {
	seed := soak.Seed(t)
	users := soak.Rounds(9, 200)
	instances := soak.Rounds(3, 40) // of each plugin
	var plugins []Plugin
	var names []string
	for i := range 5 {
		name := fmt.Sprintf("calm%d", i)
		names = append(names, name)
		plugins = append(plugins, Plugin{
			Name: name, Path: program(t, name), Confinement: plain, Limits: sandbox.DefaultLimits(), Scope: PerUser,
			MaxInstances: instances, Restart: Restart{MaxCrashes: 1000},
		})
	}
	k := keepPlugins(t, plugins...)
	k.Supervisor.timing.start, k.Supervisor.timing.room = 19*time.Second, time.Minute // on a busy machine
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := k.hold(t)

	c := newCrowd(k, users, names...)
	c.burst, c.pause, c.kills = 5, time.Duration(soak.Rounds(5, 100))*time.Millisecond, soak.Rounds(10, 1_000_000)
	var left atomic.Int64
	left.Store(int64(users) * 50)
	begun, lasts := time.Now(), time.Duration(soak.Rounds(0, 600))*time.Second
	c.run(t, seed, func() bool { return left.Add(-1) >= 0 || time.Since(begun) < lasts })
	c.fair(t)
	during := k.hold(t)
	if c.peak > instances {
		t.Errorf("a plugin has %d processes, want at most %d", c.peak, instances)
	}
	if c.largest > maxProcess || during.heap > before.heap+tool.ByteSize(users*len(names))*maxPerUser+16*tool.MiB {
		t.Errorf("a process has %v of memory, and the host %v; %v before", c.largest, during.heap, before.heap)
	}
	crashes, starts := k.lives()
	t.Logf("%d users made %d calls in %v; %d processes were started and %d killed in a call; the largest had %v; the host has %+v",
		users, int64(users)*50-left.Load(), time.Since(begun), starts, crashes, c.largest, during)

	// Without processes, nothing is left but the users' directories.
	k.Kill(t.Context(), func(string, string) bool { return true })
	var after held
	eventually(t, fmt.Sprintf("nothing is left over that was not there before, %+v", before), func() bool {
		after = k.hold(t)
		return after.within(before)
	})
	if after.heap > before.heap+8*tool.MiB {
		t.Errorf("the host has %v of memory, and %v before", after.heap, before.heap)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	c.empty(t)
}
