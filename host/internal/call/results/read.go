package results

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Result is a result that is being read. Its owner must Close it.
type Result struct {
	// Size is the number of bytes that can be read.
	Size int64
	// Whole is the size of the result: more than Size if it was longer than the quota,
	// so that only its head was kept.
	Whole int64
	// Untrusted says that the result holds content from outside. Every part that is shown must
	// be marked as untrusted.
	Untrusted bool

	file *os.File
}

var _ io.ReaderAt = (*Result)(nil)

// Find opens a result of a user. The error is [tool.NotFound] for results of other
// users, expired ones, and ones that never existed.
func (d *Dir) Find(user, handle string) (*Result, error) {
	if !handlePattern().MatchString(handle) {
		return nil, d.unknown(handle)
	}
	folder := folder(user)
	k, ok := d.lookUp(folder, handle)
	if !ok {
		return nil, d.unknown(handle)
	}
	file, err := d.root.Open(path.Join(folder, k.file))
	if errors.Is(err, os.ErrNotExist) { // dropped since
		return nil, d.unknown(handle)
	}
	if err != nil {
		return nil, tool.Errorf(tool.Unavailable, "the result %s cannot be read", handle).WithCause(err).
			WithHint("make the call that had it again")
	}
	return &Result{Size: k.size, Whole: k.whole, Untrusted: k.untrusted, file: file}, nil
}

func (d *Dir) lookUp(folder, handle string) (kept, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.users[folder]
	if s == nil {
		return kept{}, false
	}
	i := s.index(handle)
	if i < 0 || d.expired(s.kept[i]) {
		return kept{}, false
	}
	return *s.kept[i], true
}

// maxShown bounds how much of a handle an error repeats.
const maxShown = 64

// unknown returns the error for a result that the user cannot read.
func (d *Dir) unknown(handle string) error {
	return tool.Errorf(tool.NotFound, "there is no result %s: whole results are kept for %s, or less if there are many",
		cmp.Or(tool.VisibleName(excerpt.Of(handle, maxShown)), `""`), d.ttl).
		WithHint("take the handle from the end of the output that was cut, or make the call that had it again")
}

// ReadAt implements [io.ReaderAt].
func (r *Result) ReadAt(data []byte, offset int64) (int, error) { return r.file.ReadAt(data, offset) }

// Close closes the file.
func (r *Result) Close() error { return r.file.Close() }
