package sdk

import (
	"bytes"
	"errors"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// CheckPreview returns an error if the state has changed since the preview.
// approved is [Call.PreviewDigest], digest is the digest of the current state, and
// failure is the error, if the tool could not read the state. The preview has
// succeeded, so a failure because of the state or the arguments is a change, too.
// Without a preview, CheckPreview returns failure.
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

// ChangedSincePreview returns the error for a state that has changed since the
// preview, so that nothing was done. now describes the current state; it may be "".
func ChangedSincePreview(now string) *tool.Error {
	message := "What the call concerns has changed since the preview"
	if now != "" {
		message += ": " + now
	}
	return tool.Errorf(tool.Conflict, "%s", message).WithHint("nothing was done; look at it again and repeat the call")
}
