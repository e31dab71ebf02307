package daemon

import (
	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/store"
)

// AgentToken returns the token that makes a caller an agent of the host with a
// state directory. If there has been no host yet, AgentToken makes it, as the
// host does when it starts: the first one to ask does not matter.
func AgentToken(stateDir string) (string, error) {
	if err := store.MakeDir(stateDir); err != nil {
		return "", err
	}
	return auth.EnsureKey(stateDir, auth.AgentKey)
}
