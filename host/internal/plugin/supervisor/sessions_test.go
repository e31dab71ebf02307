package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Processes that asked for it learn of ended sessions, in order; others do not. A process that
// does not answer delays no other.
func TestEndSession(t *testing.T) {
	t.Parallel()
	k := keep(t, "sessions", "draining")
	k.timing.probe = 5 * time.Second // enough for those that answer
	k.EndSession("before")           // nothing runs
	k.mustCall(t, "sessions", "echo")
	k.mustCall(t, "draining", "echo")
	for _, id := range []string{"mcp_one", "slow", "mcp_two"} {
		k.EndSession(id)
	}
	k.log.await(t, "sessions hears of the end of mcp_two")
	k.log.await(t, "the plugin cannot be told of the end of a session")
	log := k.log.String()
	for _, id := range []string{"mcp_one", "slow"} {
		at := strings.Index(log, "sessions hears of the end of "+id)
		if at < 0 || at > strings.Index(log, "sessions hears of the end of mcp_two") {
			t.Errorf("the end of %s was told at %d of the log", id, at)
		}
	}
	for _, never := range []string{"draining hears", "of the end of before"} {
		if strings.Contains(log, never) {
			t.Errorf("the log has %q", never)
		}
	}
}

// A process that lags behind delays no other, and ended sessions beyond its queue are dropped.
func TestEndSessionsOfABusyPlugin(t *testing.T) {
	t.Parallel()
	k := keep(t, "sessions")
	k.timing.probe = time.Hour
	k.mustCall(t, "sessions", "echo")
	k.EndSession("slow")
	k.log.await(t, "hears of the end of slow")
	for i := range maxEnded + 1 {
		k.EndSession(fmt.Sprint("mcp_", i))
	}
	k.log.await(t, "the plugin is not told of the end of a session: too many others wait")
}
