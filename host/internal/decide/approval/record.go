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

// State is the state of a record. A record starts as [Open]. An approved record is spent
// by its call, or closed.
type State string

// The states.
const (
	Open     State = "open"
	Approved State = "approved"
	Rejected State = "rejected"
	// Expired means that no answer came in time, or that the call did not run in time.
	Expired State = "expired"
	// Canceled means that the caller gave up.
	Canceled State = "canceled"
	// Spent means that the call used the approval.
	Spent State = "spent"
)

var states = []State{Open, Approved, Rejected, Expired, Canceled, Spent}

// Closed reports whether the state is final.
func (s State) Closed() bool { return s != Open && s != Approved }

// ParseState reads the name of a state.
func ParseState(name string) (State, error) {
	if !slices.Contains(states, State(name)) {
		return "", fmt.Errorf("unknown state %q, expected one of %v", name, states)
	}
	return State(name), nil
}

// Record is one question to a person and its answer. The question never changes. Times
// are in UTC and have milliseconds.
type Record struct {
	// ID is the record's own, "ap_" and a UUIDv7.
	ID string `json:"id"`
	// Call is the id of the call that asked first.
	Call string `json:"call"`
	// User, Client and Session are the caller's.
	User    string `json:"user"`
	Client  string `json:"client,omitempty"`
	Session string `json:"session,omitempty"`
	// Plugin and Tool name the tool; Digest identifies the plugin's program.
	Plugin string `json:"plugin"`
	Tool   string `json:"tool"`
	Digest string `json:"digest,omitempty"`
	// Definition is the digest of the tool's accepted definition; "" if the plugin is not locked.
	Definition string    `json:"definition,omitempty"`
	Tier       tool.Tier `json:"tier"`
	// Description is the first sentence of the plugin's description of the tool.
	Description string `json:"description,omitempty"`
	// Verdict is why a person is asked. Rule decided it, and is configured at Where.
	Verdict policy.Verdict `json:"verdict"`
	Rule    string         `json:"rule"`
	Where   string         `json:"where,omitempty"`
	// Approvers is how many different people must approve the call; 0 means one. Assents are
	// the approvals so far.
	Approvers int      `json:"needs,omitempty"`
	Assents   []Assent `json:"assents,omitempty"`
	// PolicyRevision identifies the policy that decided to ask.
	PolicyRevision string `json:"policy_revision,omitempty"`
	// Summary is one short line for lists. [Show] shows the whole record.
	Summary string `json:"summary"`
	// Arguments are the arguments of the call; secret ones are hidden.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// ArgumentsHash is the digest of the arguments as they will be sent.
	ArgumentsHash string `json:"arguments_hash"`
	// Preview is the plugin's description of the effects of the call; nil if it has
	// none.
	Preview *tool.Preview `json:"preview,omitempty"`
	// NoPreview is why a tool with previews returned none for this call.
	NoPreview string `json:"no_preview,omitempty"`
	// Runs are the programs that shell commands in the arguments would run, as the host
	// reads them.
	Runs []string `json:"runs,omitempty"`
	// Sensitive are the sensitive files that the call may use, as absolute paths without
	// symbolic links.
	Sensitive []string `json:"sensitive,omitempty"`
	// SensitiveDigest is the digest of Sensitive; "" if there are none.
	SensitiveDigest string `json:"sensitive_digest,omitempty"`
	// Subject is the part of the call that a grant can be about.
	Subject Subject `json:"subject,omitzero"`
	// Given is the program and the tools that a grant would be given for.
	Given catalog.Basis `json:"given,omitzero"`
	// Paused are grants that would cover the call if they were not paused.
	Paused []PausedGrant `json:"paused,omitempty"`
	// PreviewDigest is the digest of Preview; "" if there is none.
	PreviewDigest string `json:"preview_digest,omitempty"`
	// Context is the agent's words about the call.
	Context string `json:"context,omitempty"`
	// Standing reports that the answer may give a grant.
	Standing bool `json:"standing"`
	// NoGrant is why it may not.
	NoGrant string `json:"no_grant,omitempty"`
	// Created is when the question was asked. The decision must be made, and the call
	// must run, before Expires.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`

	State State `json:"state"`
	// DecidedBy is the user who decided; "" if no person did. Via is the channel, e.g.
	// "cli"; it is "timeout" or "caller" if no person decided, and [ViaStop] if an admin stopped the
	// calls.
	DecidedBy string    `json:"decided_by,omitempty"`
	Via       string    `json:"via,omitempty"`
	Message   string    `json:"message,omitempty"`
	Decided   time.Time `json:"decided,omitzero"`
	// SpentBy is the id of the call that ran.
	SpentBy string `json:"spent_by,omitempty"`
	// Grants are the grants that the answer gave; only [Service.Decide] sets them.
	Grants []Grant `json:"grants,omitempty"`
}

// VisibleTo reports whether a caller may see the record as an approver or an
// admin does.
func (r Record) VisibleTo(by auth.Caller) bool { return sees(by, r.User) }

// sees reports whether a caller may see a user's approvals and grants.
func sees(by auth.Caller, user string) bool {
	return !by.Roles.Has(auth.Agent) && (by.MayApprove(user) || by.Roles.Has(auth.Admin))
}

// ended describes the decision about the record in an error.
func (r Record) ended() string {
	who := string(r.State)
	if r.State == Spent {
		who = string(Approved) // the decision; its call has run since
	}
	if r.DecidedBy != "" {
		who += " by " + tool.VisibleName(r.DecidedBy)
	}
	if progress := r.Progress(); progress != "" && r.State != Rejected {
		who += " (" + progress + ")"
	}
	if r.Via != "" && r.DecidedBy != "" {
		who += " over " + tool.VisibleName(r.Via)
	}
	if !r.Decided.IsZero() {
		who += " at " + r.Decided.Format(time.RFC3339)
	}
	return who
}

// Repeatable reports whether the Arguments of a record from [Service.Get] are the whole
// arguments of the call, without hidden secrets.
func (r Record) Repeatable() bool {
	return r.Arguments != nil && digest.Of(r.Arguments) == r.ArgumentsHash
}

// Refusal returns the error for a use that the state of the record does not allow; it
// describes that state.
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

// unknown returns the error for an id that does not exist. An id whose record the caller
// may not see gets the same error, so that the caller cannot tell the two apart.
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
