package roots

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCopyStays checks that a caller who cancels a move learns that the call has ended, even
// if a copy stays behind, and learns what else happened.
func TestCopyStays(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	source, err := r.Target("f", TargetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	const stays = "f is at its new place as a copy, but could not be removed from where it was"
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		err := source.stays(ended)
		if _, told := errors.AsType[*tool.Error](err); told || !errors.Is(err, ended) || !strings.HasPrefix(err.Error(), stays) {
			t.Errorf("stays(%v) = %v, want that error and %q", ended, err, stays)
		}
	}
	if err, want := source.stays(unix.EACCES), "failed: "+stays+": Failed to write file: permission denied"; err.Error() != want {
		t.Errorf("stays(%v) = %v, want %q", unix.EACCES, err, want)
	}
}
