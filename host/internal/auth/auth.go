// Package auth turns a credential into a caller. Who calls, and what the
// caller may do, comes from the credential alone, never from an argument. No
// credential that lets a program call tools lets it approve calls.
package auth

import (
	"os"
	"os/user"
	"slices"
	"strconv"
)

// Caller is who makes a call or decides one.
type Caller struct {
	// User is the person or account whose files, memory and results the call
	// may see.
	User string
	// Client is the program that calls, as it says itself. It gives no rights;
	// an approval counts for the same client only, so that one program does not
	// take another one's.
	Client string
	// Session groups the calls of one conversation.
	Session string
	// Token names the configured token that the caller has; "" for the host's
	// own credentials.
	Token string
	// Digest is the hex digest of that token's secret; "" without a token. A token that
	// is replaced keeps its name.
	Digest string
	// Roles are what the credential allows.
	Roles Roles
	// Elicitation lets the client ask its own user to approve the caller's calls,
	// and bring back the answer (MCP's elicitation).
	Elicitation bool
	// Approves names the users beside the caller's own whose calls an approver
	// may decide.
	Approves []string
}

// MayApprove reports whether the caller may decide calls of a user: an approver
// those of its own user, and of the users that its credential names.
func (c Caller) MayApprove(user string) bool {
	return c.Roles.Has(Approver) && (c.User == user || slices.Contains(c.Approves, user))
}

// LocalUser returns the user of calls that arrive from this very account:
// configured if it is not empty, else the account's name. An account without
// one, as in many containers, is called by its number, e.g. "uid-1000".
func LocalUser(configured string) string {
	if configured != "" {
		return configured
	}
	if account, err := user.Current(); err == nil {
		return account.Username
	}
	return "uid-" + strconv.Itoa(os.Getuid())
}
