package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Assent is the approval of one of several people.
type Assent struct {
	By      string    `json:"by"`
	Via     string    `json:"via,omitempty"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// needed returns how many people must approve the record.
func (r Record) needed() int { return max(r.Approvers, 1) }

// ApprovedBy reports whether a user has approved the record. Whoever approved a call with several
// credentials is one person if they belong to one user.
func (r Record) ApprovedBy(user string) bool {
	return slices.ContainsFunc(r.Assents, func(g Assent) bool { return g.By == user })
}

// Progress describes how many of the people have approved, such as "1 of 2, by lea"; "" if one
// person decides.
func (r Record) Progress() string {
	if r.needed() == 1 {
		return ""
	}
	text := fmt.Sprintf("%d of %d", len(r.Assents), r.needed())
	var names []string
	for _, g := range r.Assents {
		names = append(names, tool.VisibleName(g.By))
	}
	if len(names) > 0 {
		text += ", by " + strings.Join(names, " and ")
	}
	return text
}

// Approver names who has approved the record: all of several people, such as "ada and lea".
func (r Record) Approver() string {
	if len(r.Assents) == 0 {
		return r.DecidedBy
	}
	var names []string
	for _, a := range r.Assents {
		names = append(names, a.By)
	}
	return strings.Join(names, " and ")
}

// give adds an approval to a record that several people must approve. It reports whether the record
// is still open, and has written the approval then; otherwise this approval is the last one, which
// the caller writes. The caller holds l.mu.
func (s *Service) give(ctx context.Context, l *live, r *Record) (open bool, err error) {
	now, err := s.read(ctx, r.ID, false)
	if err != nil {
		return false, err
	}
	if now.State != Open {
		return false, nil // the caller finds out
	}
	r.Assents = now.Assents
	if r.ApprovedBy(r.DecidedBy) {
		return false, tool.Errorf(tool.PermissionDenied, "%s has approved %s already: it needs %d different people", tool.VisibleName(r.DecidedBy), r.ID, r.needed()).
			WithHint("another person decides; two tokens of one user are one person")
	}
	r.Assents = append(slices.Clip(r.Assents), Assent{By: r.DecidedBy, Via: r.Via, Message: r.Message, At: r.Decided})
	if len(r.Assents) >= r.needed() {
		return false, nil
	}
	text, err := assentsText(r.Assents)
	if err != nil {
		return false, err
	}
	var won bool
	err = s.store.Do(ctx, func(tx *sql.Tx) error {
		var err error
		won, err = execOne(ctx, tx, `UPDATE approvals SET assents = ? WHERE id = ? AND state = 'open'`, text, r.ID)
		return err
	})
	if err != nil {
		return false, unwritten(ctx, err, "The decision about approval %s could not be recorded, so it does not count", r.ID)
	}
	if !won {
		return false, nil
	}
	r.State, r.DecidedBy, r.Via, r.Message, r.Decided = Open, "", "", "", time.Time{}
	s.publish(l, *r)
	return true, nil
}

// unlessFailed returns the record, or the error without it.
func (r Record) unlessFailed(err error) (Record, error) {
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

// assentsText returns the approvals so far as the database keeps them.
func assentsText(assents []Assent) (string, error) {
	if len(assents) == 0 {
		return "", nil
	}
	text, err := json.Marshal(assents)
	return string(text), err
}
