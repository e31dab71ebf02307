package auth

import (
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Group is a named set of users.
type Group struct {
	Name string
	// Users are the users in it; "*" means every user.
	Users []string
	// Toolset limits the tools of its users; nil does not.
	Toolset *Toolset
	// Limits are those of each of its users.
	Limits Limits
}

// Limits bound the calls of one user. A zero field keeps the host's own bound, and a negative one
// means no bound.
type Limits struct {
	// ActionsPerHour bounds the calls that change something.
	ActionsPerHour int
	// ConcurrentCalls bounds the calls that run at the same time. Further ones wait.
	ConcurrentCalls int
	// Results bounds the kept results that were too long for their callers. It is never negative.
	Results tool.ByteSize
	// NetworkPerDay bounds the bytes of connections through the proxy. It is never negative.
	NetworkPerDay tool.ByteSize
}

// Everyone is the name in [Group.Users] that means every user.
const Everyone = "*"

// Groups are all groups. Their names differ.
type Groups []Group

// Join returns the caller as a member of its groups: those that list its user, and those that its
// credential names. A user of several groups may use the tools of each toolset, and has the widest of
// their limits. Groups that do not exist are dropped.
func (g Groups) Join(c Caller) Caller {
	var names []string
	var own *Toolset
	for _, group := range g {
		if !slices.Contains(group.Users, Everyone) && !slices.Contains(group.Users, c.User) && !slices.Contains(c.Groups, group.Name) {
			continue
		}
		names = append(names, group.Name)
		c.Limits.ActionsPerHour = wider(c.Limits.ActionsPerHour, group.Limits.ActionsPerHour)
		c.Limits.ConcurrentCalls = wider(c.Limits.ConcurrentCalls, group.Limits.ConcurrentCalls)
		c.Limits.Results = max(c.Limits.Results, group.Limits.Results)
		c.Limits.NetworkPerDay = max(c.Limits.NetworkPerDay, group.Limits.NetworkPerDay)
		switch set := group.Toolset; {
		case set == nil:
		case own == nil:
			own = &Toolset{Name: set.Name, Tools: slices.Clone(set.Tools)}
		case own.Name != set.Name:
			own.Name, own.Tools = own.Name+", "+set.Name, append(own.Tools, set.Tools...)
		}
	}
	c.Groups = names
	if own != nil {
		c = c.Within(*own)
	}
	return c
}

// wider returns the wider of two limits.
func wider(a, b int) int {
	if a < 0 || b < 0 {
		return min(a, b)
	}
	return max(a, b)
}
