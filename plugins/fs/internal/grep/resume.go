package grep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/roots"
)

// start is the place where a page begins: behind a line of a file, or behind the file if
// the page lists files. The zero value is the beginning.
type start struct {
	rel  string
	at   int
	file bool // behind the file
}

// place returns the cursor of the page that begins behind a line of a file. It has a digest
// of the path, which may be too long for a cursor.
func place(rel string, line int) sdk.Cursor {
	sum := sha256.Sum256([]byte(rel))
	return sdk.CursorAt(int64(line), hex.EncodeToString(sum[:8]))
}

// resume finds the file of the cursor. It reads only names.
func (s *contentSearch) resume(ctx context.Context, r *roots.Roots) (start, error) {
	if s.query.Cursor == "" {
		return start{}, nil
	}
	at, _ := s.query.Cursor.Position()
	files, err := filetree.Open(r, s.query.Path, filetree.Options{Gitignore: s.query.Gitignore, Skip: s.names.Skip})
	if err != nil {
		return start{}, err
	}
	defer files.Close()
	for e, err := range files.Walk(ctx) {
		if err != nil && e.Path() == "" {
			return start{}, err
		}
		if rel := e.Rel(); e.Type.IsRegular() && place(rel, int(at)) == s.query.Cursor {
			return start{rel: rel, at: int(at), file: s.query.Mode != "content"}, nil
		}
	}
	return start{}, s.query.Cursor.Refuse()
}

// isAfter reports whether the place follows an entry and everything in it.
func (s start) isAfter(e filetree.Entry) bool {
	if s.rel == "" {
		return false
	}
	rel := e.Rel()
	if e.IsDir() && strings.HasPrefix(s.rel, rel+"/") {
		return false
	}
	order := filetree.Compare(rel, s.rel)
	return order < 0 || order == 0 && s.file
}

// line returns the last line of a file that precedes the place; 0 is none.
func (s start) line(rel string) int {
	if rel != s.rel {
		return 0
	}
	return s.at
}
