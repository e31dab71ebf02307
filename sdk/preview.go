package sdk

import (
	"bytes"
	"errors"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// CheckPreview refuses what was approved for another state than there is now.
// approved is the call's [Call.PreviewDigest], and digest that of the state that the
// tool has looked at just now, or failure why it could not: what the preview has shown
// was possible, so that a failure by what is there, or by the arguments, is another
// state, too. If there was no preview it returns failure.
func CheckPreview(approved, digest []byte, failure error) error {
	if len(approved) == 0 {
		return failure
	}
	var known *tool.Error
	impossible := []tool.Code{tool.NotFound, tool.Failed, tool.Conflict, tool.InvalidArgument}
	switch {
	case errors.As(failure, &known) && slices.Contains(impossible, known.Code):
		return ChangedSincePreview(known.Message).WithCause(failure)
	case failure != nil:
		return failure
	case !bytes.Equal(approved, digest):
		return ChangedSincePreview("")
	}
	return nil
}

// ChangedSincePreview says that the state is not the one that was approved, so that
// nothing was done. now says how it is; it may be "".
func ChangedSincePreview(now string) *tool.Error {
	message := "What the call concerns has changed since the preview"
	if now != "" {
		message += ": " + now
	}
	return tool.Errorf(tool.Conflict, "%s", message).WithHint("nothing was done; look at it again and repeat the call")
}
