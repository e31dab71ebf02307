package sdk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestCheckPreview(t *testing.T) {
	seen, other := []byte("seen"), []byte("other")
	gone := tool.Errorf(tool.NotFound, "a.txt is gone")
	denied := tool.Errorf(tool.PermissionDenied, "no")
	const changed = "conflict: What the call concerns has changed since the preview"
	for _, tt := range []struct {
		name             string
		approved, digest []byte
		failure          error
		want             string // "" for nil
	}{
		{"no preview", nil, other, nil, ""},
		{"no preview, and it fails", nil, nil, gone, "not_found: a.txt is gone"},
		{"the same state", seen, seen, nil, ""},
		{"another state", seen, other, nil, changed},
		{"no state", seen, nil, nil, changed},
		{"it is not possible any more", seen, nil, gone, changed + ": a.txt is gone"},
		{"it is not allowed any more", seen, nil, denied, "permission_denied: no"},
		{"the caller has gone", seen, nil, context.Canceled, "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			err := sdk.CheckPreview(tt.approved, tt.digest, tt.failure)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("CheckPreview = %q, want %q", got, tt.want)
			}
			if tt.failure != nil && !errors.Is(err, tt.failure) {
				t.Errorf("CheckPreview = %v, which hides %v", err, tt.failure)
			}
		})
	}
}
