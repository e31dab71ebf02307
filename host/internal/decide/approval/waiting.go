package approval

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxHeadline bounds what the error of a call that waits repeats of its preview.
const maxHeadline = 300

// Waiting returns the error for a call that waits for the decision about the record. It
// says what the call would do, what a person types to decide, and how the caller gets
// the result. command returns the line for a command of toolhost that reaches this host
// from any directory; next is the call that returns the result.
func (r Record) Waiting(command func(words string) string, next string) *tool.Error {
	headline := r.Summary
	if r.Preview != nil && r.Preview.Summary != "" {
		headline = r.Preview.Summary
	}
	message := "Not run yet: waits for a person to approve " + r.ID
	if progress := r.Progress(); progress != "" {
		message = fmt.Sprintf("Not run yet: waits for %d people to approve %s (%s so far)", r.needed(), r.ID, progress)
	}
	if headline, _, _ = strings.Cut(headline, "\n"); headline != "" {
		message += fmt.Sprintf(" (%s)", tool.Visible(excerpt.Of(headline, maxHeadline)))
	}
	return tool.Errorf(tool.PendingApproval, "%s", message).WithHint(
		"tell the user to type one of these, then call %s for the result:\n  %s\n  %s",
		next, command("approvals approve "+r.ID), command("approvals reject "+r.ID))
}
