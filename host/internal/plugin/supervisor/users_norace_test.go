//go:build !race

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// crowd is many users who call plugins, each with a process of their own, while processes of the
// first quarter of the users are killed.
type crowd struct {
	k       *kept
	plugins []string
	burst   int            // how many calls a user makes to a plugin before it calls another
	pause   time.Duration  // between kills
	kills   int            // how many may follow
	shares  []atomic.Int64 // calls that ended, by user
	killed  []atomic.Bool  // users whose processes were killed
	running []int          // the processes that were seen last
	peak    int            // of the processes of one plugin
	largest tool.ByteSize  // of the memory of a process
}

// run has each user make calls, one after another, as long as more says. Every call must end with a
// result, or if its user's processes are killed, with an error that says so.
func (c *crowd) run(t *testing.T, seed uint64, more func() bool) {
	t.Helper()
	var all sync.WaitGroup
	calling, done := context.WithCancel(t.Context())
	for n := range c.shares {
		all.Go(func() { // ends with the last call
			for i := n; more(); i++ {
				c.call(t, n, c.plugins[i/c.burst%len(c.plugins)])
			}
		})
	}
	go func() { // ends with the calls
		all.Wait()
		done()
	}()
	random := rand.New(rand.NewPCG(seed, 0))
	tick := time.NewTicker(c.pause)
	defer tick.Stop()
	for {
		select {
		case <-calling.Done():
			return
		case <-tick.C:
			c.look(t, c.plugins[random.IntN(len(c.plugins))], random)
		}
	}
}

// call makes one call of a user.
func (c *crowd) call(t *testing.T, n int, plugin string) {
	t.Helper()
	user := fmt.Sprintf("user%d", n)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	call := tool.Call{ID: "tc_1", Tool: "pid", Arguments: []byte(`{}`), Context: tool.Context{User: user}}
	_, _, err := c.k.Run(ctx, plugin, "", call, tool.Sink{})
	c.shares[n].Add(1)
	e, known := errors.AsType[*tool.Error](err)
	switch {
	case err == nil:
	case !known || !c.killed[n].Load() || e.Code != tool.PluginCrashed && e.Code != tool.Unavailable:
		t.Errorf("a call of %s to %s = %v", user, plugin, err)
	default:
		c.k.forgiveUser(plugin, user) // instead of waiting
	}
}

// forgiveUser ends the wait of a user after crashes.
func (k *kept) forgiveUser(plugin, user string) {
	m := k.managers[plugin]
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.scoped[owner{user: user}]; p != nil {
		p.backoff = restarts{}
	}
}

// look notes the processes of a plugin, and kills one of the first quarter of the users at random, one
// that has a call if there is one.
func (c *crowd) look(t *testing.T, plugin string, random *rand.Rand) {
	t.Helper()
	var victims, busy []Instance
	c.running = c.running[:0]
	for _, i := range c.k.state(t, plugin).Instances {
		if i.PID == 0 {
			continue
		}
		c.running = append(c.running, i.PID)
		if c.victim(i.User) {
			victims = append(victims, i)
		}
		if c.victim(i.User) && i.Calls > 0 {
			busy = append(busy, i)
		}
	}
	c.peak = max(c.peak, len(c.running))
	if len(busy) > 0 {
		victims = busy
	}
	if len(victims) == 0 || c.kills == 0 {
		return
	}
	i := victims[random.IntN(len(victims))]
	c.largest = max(c.largest, memoryOf(i.PID))
	c.killed[numberOf(i.User)].Store(true)
	if syscall.Kill(i.PID, syscall.SIGKILL) == nil {
		c.kills--
	}
}

// numberOf returns the number of a user of the crowd.
func numberOf(user string) (n int) {
	_, _ = fmt.Sscanf(user, "user%d", &n) // the crowd has no others
	return n
}

// victim reports whether processes of a user are killed.
func (c *crowd) victim(user string) bool { return numberOf(user) < len(c.shares)/4 }

// memoryOf returns the memory that a process shares with no other.
func memoryOf(pid int) tool.ByteSize {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kib int64
	_, _ = fmt.Sscanf(strings.TrimSpace(rest), "%d kB", &kib)
	return tool.ByteSize(kib) * tool.KiB
}

// fair checks that no user whose processes lived got less than half of its share.
func (c *crowd) fair(t *testing.T) {
	t.Helper()
	var total int64
	for n := range c.shares {
		total += c.shares[n].Load()
	}
	for n := range c.shares {
		if got := c.shares[n].Load(); !c.killed[n].Load() && got*2*int64(len(c.shares)) < total {
			t.Errorf("user%d makes %d of %d calls, less than half of its share", n, got, total)
		}
	}
}

// empty checks that nothing is left of the users after Close.
func (c *crowd) empty(t *testing.T) {
	t.Helper()
	for _, plugin := range c.plugins {
		m := c.k.managers[plugin]
		m.mu.Lock()
		for _, p := range m.pools() {
			if p.callers != 0 || p.turn != nil || len(p.instances) > 0 {
				t.Errorf("left of %v: %d callers, turn %v, %d processes", p.of, p.callers, p.turn, len(p.instances))
			}
		}
		m.mu.Unlock()
	}
	for _, pid := range c.running {
		if !gone(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	if left, err := os.ReadDir(c.k.run.Path); err == nil && len(left) > 0 {
		t.Errorf("left in the run directory: %v", left)
	}
}

// TestUsersUnderLoad has more users call than there may be processes, by their number or by their
// memory, while processes are killed at random. Every call ends with a result or an error that says
// why, no user gets less than half of its share, and nothing is left.
func TestUsersUnderLoad(t *testing.T) {
	t.Parallel()
	for _, bound := range []string{"number", "memory"} {
		t.Run(bound, func(t *testing.T) { usersUnderLoad(t, bound) })
	}
}

func usersUnderLoad(t *testing.T, bound string) {
	t.Helper()
	t.Parallel()
	seed := soak.Seed(t)
	users := soak.Rounds(9, 200)
	k := keepScoped(t, PerUser, func(p *Plugin) {
		if p.MaxInstances = users / 3; bound == "memory" {
			p.MaxInstances = users
		}
		p.Restart.MaxCrashes = 1000
	})
	if bound == "memory" {
		k.BoundMemory(tool.ByteSize(users/3) * sandbox.DefaultLimits().Memory)
	}
	c := newCrowd(k, users, "calm")
	c.kills = users / 4
	var left atomic.Int64
	left.Store(int64(users) * int64(soak.Rounds(10, 30)))
	c.run(t, seed, func() bool { return left.Add(-1) >= 0 })
	c.fair(t)
	k.wantNoClaims(t)
	c.empty(t)
}

func newCrowd(k *kept, users int, plugins ...string) *crowd {
	return &crowd{
		k: k, plugins: plugins, burst: 1, pause: 5 * time.Millisecond,
		shares: make([]atomic.Int64, users), killed: make([]atomic.Bool, users),
	}
}
