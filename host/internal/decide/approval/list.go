package approval

import (
	"context"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Filter selects the records that [Service.List] returns.
type Filter struct {
	// By is the caller. An approver sees the records that it may decide, an admin sees
	// all, and the zero Caller sees none.
	By auth.Caller
	// States and Users select records; empty means all.
	States []State
	Users  []string
	// Limit bounds the records; 0 means 100, the maximum is 1,000.
	Limit int
}

// List returns records without their arguments and previews, the newest first.
// A record that cannot be read is left out and logged.
func (s *Service) List(ctx context.Context, f Filter) ([]Record, error) {
	where, args, any := f.where()
	if !any {
		return nil, nil
	}
	return s.readAll(ctx, where, args)
}

// where returns the SQL condition and its arguments, and false if no record can match.
func (f Filter) where() (string, []any, bool) {
	var conditions []string
	var args []any
	in := func(column string, values []string) {
		conditions = append(conditions, column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")")
		for _, v := range values {
			args = append(args, v)
		}
	}
	if !f.By.Roles.Has(auth.Admin) || f.By.Roles.Has(auth.Agent) {
		seen := slices.DeleteFunc(append([]string{f.By.User}, f.By.Approves...), func(user string) bool { return !sees(f.By, user) })
		if len(seen) == 0 {
			return "", nil, false
		}
		in("user", seen)
	}
	if len(f.Users) > 0 {
		in("user", f.Users)
	}
	if len(f.States) > 0 {
		names := make([]string, len(f.States))
		for i, s := range f.States {
			names[i] = string(s)
		}
		in("state", names)
	}
	where := ""
	if len(conditions) > 0 {
		where = "WHERE " + strings.Join(conditions, " AND ")
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	return where + " ORDER BY id DESC LIMIT ?", append(args, min(limit, maxLimit)), true
}
