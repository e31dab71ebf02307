package supervisor

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxEnded bounds the ended sessions that a process has not been told of yet.
const maxEnded = 1024

// EndSession tells the processes of all plugins that want to know it that a
// session has ended. It does not wait for them, and one that is behind with a
// thousand sessions is not told.
func (s *Supervisor) EndSession(id string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.keepers {
		k.endSession(id)
	}
	for _, k := range s.leaving {
		k.endSession(id)
	}
}

func (k *keeper) endSession(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range k.instances {
		if i.sessions == nil {
			continue
		}
		select {
		case i.sessions <- id:
		default:
			k.log.Warn("the plugin is not told of the end of a session: it is behind with others", "waiting", maxEnded)
		}
	}
}

// tellSessions tells a process of ended sessions until ctx ends.
func (k *keeper) tellSessions(ctx context.Context, i *instance) {
	for {
		select {
		case id := <-i.sessions:
			bounded, cancel := context.WithTimeout(ctx, k.s.timing.probe)
			err := i.wire.endSession(bounded, id)
			// Unavailable is the end of the process.
			if err != nil && ctx.Err() == nil && status.Code(err) != codes.Unavailable {
				k.log.Warn("the plugin cannot be told of the end of a session", "error", k.s.opts.Redact(cleanLine(err.Error())))
			}
			cancel()
		case <-ctx.Done():
			return
		}
	}
}
