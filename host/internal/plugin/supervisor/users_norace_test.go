//go:build !race

package supervisor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

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
	total := int64(users) * int64(soak.Rounds(10, 30))
	k := keepScoped(t, PerUser, func(p *Plugin) {
		if p.MaxInstances = users / 3; bound == "memory" {
			p.MaxInstances = users
		}
		p.Restart.MaxCrashes = 1000
	})
	if bound == "memory" {
		k.BoundMemory(tool.ByteSize(users/3) * sandbox.DefaultLimits().Memory)
	}
	var left atomic.Int64
	left.Store(total)
	shares, killed := make([]atomic.Int64, users), make([]atomic.Bool, users)
	var all sync.WaitGroup
	for n := range users {
		all.Go(func() { // ends with the last call
			user := fmt.Sprintf("user%d", n)
			for left.Add(-1) >= 0 {
				shares[n].Add(1)
				_, err := k.callAs(t.Context(), user, "pid", `{}`)
				e, known := errors.AsType[*tool.Error](err)
				switch {
				case err == nil:
				case !known || !killed[n].Load() || e.Code != tool.PluginCrashed && e.Code != tool.Unavailable:
					t.Errorf("a call of %s = %v", user, err)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 0))
	tick := time.Tick(5 * time.Millisecond)
	for kills := 0; left.Load() > 0 && kills < users/4; {
		<-tick
		instances := k.state(t, "calm").Instances
		if len(instances) == 0 {
			continue
		}
		i := instances[random.IntN(len(instances))]
		var n int
		if _, err := fmt.Sscanf(i.User, "user%d", &n); err != nil {
			t.Fatal(err)
		}
		if i.PID == 0 || n >= users/4 { // the others are not disturbed
			continue
		}
		if killed[n].Swap(true) { // a backoff would let it fail call after call
			continue
		}
		if syscall.Kill(i.PID, syscall.SIGKILL) == nil {
			kills++
		}
	}
	all.Wait()
	for n := range users {
		if got := shares[n].Load(); !killed[n].Load() && got*2 < total/int64(users) {
			t.Errorf("user%d makes %d of %d calls, less than half of its share", n, got, total)
		}
	}
	k.wantNoClaims(t)
	m := k.managers["calm"]
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools() {
		if p.callers != 0 || p.turn != nil || len(p.instances) > 0 {
			t.Errorf("left of %v: %d callers, turn %v, %d processes", p.of, p.callers, p.turn, len(p.instances))
		}
	}
	if left, err := os.ReadDir(k.run.Path); err == nil && len(left) > 0 {
		t.Errorf("left in the run directory: %v", left)
	}
}
