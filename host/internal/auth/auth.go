// Package auth turns a credential into a caller. The identity and the rights of a caller
// come from the credential only, never from an argument. No credential lets a program both
// call tools and approve calls.
package auth

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Caller is the principal that makes a call or decides one.
type Caller struct {
	// User is the person or account whose files, memory and results the call may see.
	User string
	// Client is the name that the calling program gives itself. It grants no rights. An
	// approval is valid only for the same client, so that no program uses another's.
	Client string
	// Session groups the calls of one conversation.
	Session string
	// Token is the name of the caller's configured token, or of the issuer of its access token;
	// "" for the host's own credentials.
	Token string
	// Digest is the hex digest of that token's secret, or of the settings of the issuer; "" without
	// a token. A rotated token keeps its name.
	Digest string
	// Issuer is the name of the issuer of the caller's access token, which expires at Expires; ""
	// and the zero value for a configured token and the host's own credentials.
	Issuer  string
	Expires time.Time
	// Roles are the roles of the credential.
	Roles Roles
	// Elicitation lets the client ask its own user to approve the caller's calls (MCP's
	// elicitation).
	Elicitation bool
	// Toolsets limit the tools that the caller sees and may call; see [Caller.MayUse].
	Toolsets []Toolset
	// Structured asks for structured results where the client can choose (MCP).
	Structured bool
	// Groups are the names of the groups of the user, sorted as configured.
	Groups []string
	// Limits bound the calls of the user.
	Limits Limits
	// Approves names further users whose calls an approver may decide, besides its own.
	Approves []string
}

// MayApprove reports whether the caller may decide calls of a user. An approver decides calls
// of its own user and of the users in Approves. An approver of an issuer decides calls of all
// other users of that issuer, but never its own: a program to which one person has logged in may
// get tokens for both.
func (c Caller) MayApprove(user string) bool {
	switch {
	case !c.Roles.Has(Approver):
		return false
	case c.Issuer != "":
		return c.User != user && strings.HasSuffix(user, "@"+c.Issuer)
	}
	return c.User == user || slices.Contains(c.Approves, user)
}

// LocalUser returns the user of calls from the host's own account: configured if it is not
// empty, otherwise the account's name. An account without a name, as in many containers,
// gets one from its number, e.g. "uid-1000".
func LocalUser(configured string) string {
	if configured != "" {
		return configured
	}
	if account, err := user.Current(); err == nil {
		return account.Username
	}
	return "uid-" + strconv.Itoa(os.Getuid())
}

// MaxUser and MaxGroup bound the names of users and groups, in bytes.
const (
	MaxUser  = 128
	MaxGroup = 256
)

// ValidUser reports whether a text can be the name of a user: 1 to [MaxUser] bytes that can be
// shown in a line as they are, without space around them. Names of accounts, such as CORP\ada,
// are valid.
func ValidUser(name string) bool { return len(name) <= MaxUser && isLine(name) }

// ValidGroup is [ValidUser] for the name of a group, with at most [MaxGroup] bytes.
func ValidGroup(name string) bool { return len(name) <= MaxGroup && isLine(name) }

func isLine(name string) bool {
	return name != "" && tool.Visible(name) == name && !strings.ContainsAny(name, "\n\t") && strings.TrimSpace(name) == name
}

// Roles is a set of roles. The zero Roles allows nothing.
type Roles uint8

// The roles.
const (
	// Agent may call tools and see its own calls.
	Agent Roles = 1 << iota
	// Approver may decide whether calls run.
	Approver
	// Admin may see every call, the journal and the plugins, and reload.
	Admin
	// Monitor may read the metrics, and nothing else: what collects them needs no more.
	Monitor
)

var roleNames = []struct {
	role Roles
	name string
}{{Agent, "agent"}, {Approver, "approver"}, {Admin, "admin"}, {Monitor, "monitor"}}

// Has reports whether every role of want is in the set.
func (r Roles) Has(want Roles) bool { return want != 0 && r&want == want }

// Names returns the names of the roles in the set.
func (r Roles) Names() []string {
	var names []string
	for _, known := range roleNames {
		if r.Has(known.role) {
			names = append(names, known.name)
		}
	}
	return names
}

// String returns the names, joined by commas.
func (r Roles) String() string { return strings.Join(r.Names(), ",") }

// ParseRoles parses names of roles. It refuses [Agent] together with another role: otherwise a
// program that calls tools could approve its own calls.
func ParseRoles(names []string) (Roles, error) {
	var roles Roles
	for _, name := range names {
		role, ok := parseRole(name)
		if !ok {
			return 0, fmt.Errorf("unknown role %q, expected agent, approver, admin or monitor", name)
		}
		roles |= role
	}
	if roles.Has(Agent) && roles != Agent {
		return 0, fmt.Errorf("the role agent excludes %s: a program that calls tools must not decide about calls", roles&^Agent)
	}
	return roles, nil
}

func parseRole(name string) (Roles, bool) {
	for _, known := range roleNames {
		if known.name == name {
			return known.role, true
		}
	}
	return 0, false
}

// sessionPrefix begins the ids of the host's own sessions.
const sessionPrefix = "mcp_"

// NewSession returns the id of a new session. No client can choose it, and the host knows when
// the session ends.
func NewSession() string { return sessionPrefix + rand.Text() }

// SessionEnds reports whether an id is from [NewSession]. Any other id is a name that a client
// chose: other clients may choose it too, and the session never ends.
func SessionEnds(id string) bool { return strings.HasPrefix(id, sessionPrefix) }
