package auth

import (
	"crypto/rand"
	"strings"
)

// sessionPrefix begins the ids of sessions that the host makes.
const sessionPrefix = "mcp_"

// NewSession returns the id of a session that the host makes, knows the end of, and lets
// no client choose.
func NewSession() string { return sessionPrefix + rand.Text() }

// SessionEnds reports whether a session is one of [NewSession]. Any other is a name that
// a client has chosen, which another one may choose, too, and which never ends.
func SessionEnds(id string) bool { return strings.HasPrefix(id, sessionPrefix) }
