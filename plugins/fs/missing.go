package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxSimilar bounds the names that are compared with one that does not exist.
	maxSimilar = 20_000
	// maxTold is how many similar names an error tells.
	maxTold = 3
	// longestName is the longest name that is compared. A longer one is not a typing mistake.
	longestName = 64
)

// suggest adds similar names to the error about a file that does not exist.
func (w *workspace) suggest(ctx context.Context, err error) error {
	var known *tool.Error
	if !errors.As(err, &known) || known.Code != tool.NotFound || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name, ok := strings.CutPrefix(known.Message, "File not found: ")
	if !ok || strings.HasPrefix(name, `"`) {
		return err
	}
	relative, shownErr := w.Display(name)
	if shownErr != nil {
		return err
	}
	similar := w.similar(ctx, relative)
	if len(similar) == 0 {
		return err
	}
	return known.WithHint("did you mean %s? Otherwise %s", strings.Join(similar, " or "), known.Hint)
}

// similar returns paths in the workspace with the same last part as a name, or a similar one,
// the nearest first.
func (w *workspace) similar(ctx context.Context, name string) []string {
	files, err := filetree.Open(w.Roots, ".", filetree.Options{Gitignore: true})
	if err != nil {
		return nil
	}
	defer files.Close()
	type near struct {
		path     string
		distance int
	}
	var found []near
	looked, base := 0, strings.ToLower(path.Base(name))
	for e, err := range files.Walk(ctx) {
		if looked++; looked > maxSimilar {
			break
		}
		if err != nil || len(e.Name) > longestName || len(base) > longestName {
			continue
		}
		distance := 0
		if other := strings.ToLower(e.Name); other != base {
			if distance = levenshtein.Distance(base, other, nil); distance > min(len(base), len(other))/5+1 {
				continue
			}
		}
		if path.Dir(e.Path()) != path.Dir(name) {
			if distance > 1 { // names in other directories are often a little similar
				continue
			}
			distance += 2
		}
		found = append(found, near{e.Path(), distance})
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
	var told []string
	for _, n := range found[:min(maxTold, len(found))] {
		told = append(told, display.VisibleName(n.path))
	}
	return told
}
