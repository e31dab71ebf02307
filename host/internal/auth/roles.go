package auth

import (
	"fmt"
	"strings"
)

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
)

var roleNames = []struct {
	role Roles
	name string
}{{Agent, "agent"}, {Approver, "approver"}, {Admin, "admin"}}

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

// ParseRoles reads the names of roles. It refuses a set that holds [Agent]
// beside another role: a program that calls tools could approve its own calls.
func ParseRoles(names []string) (Roles, error) {
	var roles Roles
	for _, name := range names {
		role, ok := parseRole(name)
		if !ok {
			return 0, fmt.Errorf("unknown role %q, expected agent, approver or admin", name)
		}
		roles |= role
	}
	if roles.Has(Agent) && roles != Agent {
		return 0, fmt.Errorf("the role agent stands beside %s: one that calls tools must not decide about calls", roles&^Agent)
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
