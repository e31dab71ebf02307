package approval

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// State is where a record stands. It begins as [Open]; an approved record is
// spent by its call, or closed without it.
type State string

// The states.
const (
	Open     State = "open"
	Approved State = "approved"
	Rejected State = "rejected"
	// Expired: nobody answered in time, or the call did not run in time.
	Expired State = "expired"
	// Canceled: the caller gave up.
	Canceled State = "canceled"
	// Spent: the call was let through.
	Spent State = "spent"
)

var states = []State{Open, Approved, Rejected, Expired, Canceled, Spent}

// Closed reports whether nothing can change the state any more.
func (s State) Closed() bool { return s != Open && s != Approved }

// ParseState reads the name of a state.
func ParseState(name string) (State, error) {
	if !slices.Contains(states, State(name)) {
		return "", fmt.Errorf("unknown state %q, expected one of %v", name, states)
	}
	return State(name), nil
}

// Record is one question to a person, and its answer. What was asked never
// changes. Times have milliseconds and are in UTC.
type Record struct {
	// ID is the record's own, "ap_" and a UUIDv7.
	ID string `json:"id"`
	// Call is the id of the call that asked first.
	Call string `json:"call"`
	// User, Client and Session are the caller's.
	User    string `json:"user"`
	Client  string `json:"client,omitempty"`
	Session string `json:"session,omitempty"`
	// Plugin and Tool name the tool; Digest is that of the plugin's program.
	Plugin string    `json:"plugin"`
	Tool   string    `json:"tool"`
	Digest string    `json:"digest,omitempty"`
	Tier   tool.Tier `json:"tier"`
	// Verdict is why a person is asked, by Rule, which is configured at Where.
	Verdict policy.Verdict `json:"verdict"`
	Rule    string         `json:"rule"`
	Where   string         `json:"where,omitempty"`
	// PolicyRevision is that of the policy which decided to ask.
	PolicyRevision string `json:"policy_revision,omitempty"`
	// Summary is one short line for lists. [Show] tells all.
	Summary string `json:"summary"`
	// Arguments are those of the call, with secret ones hidden.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// ArgumentsHash is over the arguments as they will be sent.
	ArgumentsHash string `json:"arguments_hash"`
	// Preview is what the plugin says that the call would do; nil if it says
	// nothing.
	Preview *tool.Preview `json:"preview,omitempty"`
	// NoPreview says why a tool that has previews gave none for this call.
	NoPreview string `json:"no_preview,omitempty"`
	// Runs are what arguments that are shell commands would run, as the host has
	// read them.
	Runs []string `json:"runs,omitempty"`
	// Sensitive are the sensitive files that the call may use, absolute, as links led when
	// it was asked about.
	Sensitive []string `json:"sensitive,omitempty"`
	// SensitiveDigest is over Sensitive; "" without any.
	SensitiveDigest string `json:"sensitive_digest,omitempty"`
	// Subject is what of the call a grant can be about.
	Subject Subject `json:"subject,omitzero"`
	// Given is what a grant would be given for.
	Given catalog.Basis `json:"given,omitzero"`
	// Paused are grants that would cover the call if they were not paused.
	Paused []PausedGrant `json:"paused,omitempty"`
	// PreviewDigest is over all of Preview; "" without one.
	PreviewDigest string `json:"preview_digest,omitempty"`
	// Context is what the agent says about the call.
	Context string `json:"context,omitempty"`
	// Standing says that a grant may be given with the answer.
	Standing bool `json:"standing"`
	// NoGrant says why not.
	NoGrant string `json:"no_grant,omitempty"`
	// Created is when it was asked; Expires ends the time for a decision, and
	// for the call to run after it.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`

	State State `json:"state"`
	// DecidedBy is the user who decided; "" if time or the caller did. Via is
	// the channel, e.g. "cli"; "timeout" or "caller" without a person.
	DecidedBy string    `json:"decided_by,omitempty"`
	Via       string    `json:"via,omitempty"`
	Message   string    `json:"message,omitempty"`
	Decided   time.Time `json:"decided,omitzero"`
	// SpentBy is the id of the call that ran.
	SpentBy string `json:"spent_by,omitempty"`
	// Grants are those that were given with the answer; only what [Service.Decide] returns
	// has them.
	Grants []Grant `json:"grants,omitempty"`
}

// VisibleTo reports whether a caller may see the record as an approver or an
// admin does.
func (r Record) VisibleTo(by auth.Caller) bool { return sees(by, r.User) }

// sees reports whether a caller may see a user's approvals and grants.
func sees(by auth.Caller, user string) bool {
	return !by.Roles.Has(auth.Agent) && (by.MayApprove(user) || by.Roles.Has(auth.Admin))
}

// ended says in words how the record stands, for an error.
func (r Record) ended() string {
	who := string(r.State)
	if r.State == Spent {
		who = string(Approved) // what was decided; its call ran since
	}
	if r.DecidedBy != "" {
		who += " by " + tool.VisibleName(r.DecidedBy)
	}
	if r.Via != "" && r.DecidedBy != "" {
		who += " over " + tool.VisibleName(r.Via)
	}
	if !r.Decided.IsZero() {
		who += " at " + r.Decided.Format(time.RFC3339)
	}
	return who
}

// Repeatable reports whether Arguments, of a record as [Service.Get] returns it,
// are those of the call: it had no secret ones, which are hidden.
func (r Record) Repeatable() bool {
	return r.Arguments != nil && digest.Of(r.Arguments) == r.ArgumentsHash
}

// Refusal is the error for whoever wants something of a record that it no
// longer allows: how it ended, or how it stands.
func (r Record) Refusal() *tool.Error {
	switch r.State {
	case Open:
		return tool.Errorf(tool.PendingApproval, "Approval %s is still open", r.ID)
	case Rejected:
		return tool.Errorf(tool.Rejected, "Approval %s was %s", r.ID, r.ended())
	case Expired:
		return tool.Errorf(tool.Rejected, "Approval %s has expired: its time ended at %s", r.ID, r.Expires.Format(time.RFC3339))
	case Canceled:
		return tool.Errorf(tool.Canceled, "Approval %s was canceled: its caller gave up", r.ID)
	case Spent:
		return tool.Errorf(tool.Conflict, "Approval %s was used already, by call %s", r.ID, r.SpentBy)
	case Approved:
	}
	return tool.Errorf(tool.Conflict, "Approval %s was %s", r.ID, r.ended())
}

// unknown is the error for an id that does not exist, and for one whose record
// is not the caller's: nobody can tell one from the other.
func unknown(id string) error {
	return tool.Errorf(tool.NotFound, "No approval %s", tool.VisibleName(excerpt.Of(id, maxName))).
		WithHint("toolhost approvals list shows the open ones")
}

// timeOf is the inverse of [time.Time.UnixMilli]; 0 is the zero time.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
