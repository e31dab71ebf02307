package killswitch

import (
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Scope says which calls a stop covers. The zero Scope covers all.
type Scope struct {
	// User covers only calls of this user; "" covers every user's.
	User string `json:"user,omitempty"`
	// Plugin covers only calls of this plugin's tools; "" covers every plugin's.
	Plugin string `json:"plugin,omitempty"`
}

// Covers reports whether the scope covers the calls of a user to a plugin. The user is "" for what
// a plugin does for everybody, such as a process that all users share: only a scope of every user
// covers that.
func (s Scope) Covers(user, plugin string) bool {
	return (s.User == "" || s.User == user) && (s.Plugin == "" || s.Plugin == plugin)
}

// String describes the calls for a person.
func (s Scope) String() string {
	user, plugin := tool.VisibleName(s.User), tool.VisibleName(s.Plugin)
	switch {
	case s.User != "" && s.Plugin != "":
		return fmt.Sprintf("all calls of the user %s to the plugin %s", user, plugin)
	case s.User != "":
		return fmt.Sprintf("all calls of the user %s", user)
	case s.Plugin != "":
		return fmt.Sprintf("all calls to the plugin %s", plugin)
	}
	return "all calls"
}

// Stop is a stop in force.
type Stop struct {
	Scope

	// ID is the stop's own, "st_" and a UUIDv7.
	ID string `json:"id"`
	// Reason is what the admin said about it; may be "".
	Reason string `json:"reason,omitempty"`
	// By is the admin, and Since when the stop began, in UTC to the millisecond.
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

// String describes the stop for a person.
func (s Stop) String() string {
	text := fmt.Sprintf("%s, by %s since %s", s.Scope, tool.VisibleName(s.By), s.Since.Format(time.RFC3339))
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// ErrStopped is in the chain of the error of each call that a stop refused or ended.
var ErrStopped = errors.New("stopped by an administrator")

// Refusal returns the error for a call that the stop covers. Another try is no use until the stop
// ends.
func (s Stop) Refusal() *tool.Error {
	message := "an administrator has stopped " + s.Scope.String()
	if s.Reason != "" {
		message += ": " + s.Reason
	}
	return tool.Errorf(tool.Unavailable, "%s", message).
		WithHint("the call had no effect; making it again does not help until an administrator resumes calls: tell the user").
		WithCause(fmt.Errorf("%w: %s", ErrStopped, s.ID))
}

// MaxReason is the longest reason, in bytes.
const MaxReason = 500

// maxName is the longest name of a user or a plugin, in bytes.
const maxName = 200

// check refuses a scope and a reason that cannot be shown.
func check(scope Scope, reason string) error {
	for _, text := range []struct {
		what, text string
		most       int
	}{{"user", scope.User, maxName}, {"plugin", scope.Plugin, maxName}, {"reason", reason, MaxReason}} {
		if len(text.text) > text.most || excerpt.Printable(text.text, text.most) != text.text {
			return tool.Errorf(tool.InvalidArgument, "the %s of the stop cannot be shown: expected at most %d bytes of printable text in one line", text.what, text.most)
		}
	}
	return nil
}
