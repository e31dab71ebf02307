package porcelain

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Change is a file that a diff changes.
type Change struct {
	// Status is A, C, D, M, R, T or U.
	Status string
	// Mode, in octal, and ID, the object id, are those of the newer state.
	Mode, ID string
	// Path is relative to the worktree, and From where it was before a rename.
	Path, From string
	// Added and Deleted count lines; Binary says that there are none to count.
	Added, Deleted int
	Binary         bool
}

// ErrCombined says that a change is one from several states, of which git makes no
// patch beside a list: of files in conflict, when it makes both.
var ErrCombined = errors.New("a change from several states")

// Changes reads the output of git diff --raw --numstat -z, whose second part is
// about the same files in the same order; with --patch, an empty record and a patch
// follow.
type Changes struct {
	*Records
	// Files are the changes.
	Files []Change
	// Keep bounds how many are kept; 0 means all. Total, Added and Deleted count all
	// of them.
	Keep           int
	Total          int
	Added, Deleted int
	// Each, if not nil, gets every change as it is listed, also those that are not kept.
	Each func(Change)
	// Patch, if not nil, gets the patch as it comes, after Files are all there.
	Patch func(part []byte) error

	pending  *Change // whose names come next
	names    int     // of them
	conflict string  // the path of the last change if it is U
	counted  int     // files that the second part has told of
	listed   bool    // and the patch follows
	line     Change  // the counts that names follow
}

// NewChanges returns a reader that keeps so many files.
func NewChanges(keep int) *Changes {
	c := &Changes{Keep: keep}
	c.Records = NewRecords(c.record)
	return c
}

// Write takes the next part of the output. It fails as Patch does; Close tells of
// everything else.
func (c *Changes) Write(data []byte) (int, error) {
	size := len(data)
	for len(data) > 0 && !c.listed {
		end := bytes.IndexByte(data, 0) + 1
		if end == 0 {
			end = len(data)
		}
		_, _ = c.Records.Write(data[:end]) // it never fails
		data = data[end:]
	}
	if len(data) > 0 {
		if err := c.Patch(data); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// Close says what was wrong.
func (c *Changes) Close() error {
	if err := c.Records.Close(); err != nil {
		return err
	}
	if c.pending != nil {
		return errors.New("the output ends within a change")
	}
	return nil
}

func (c *Changes) record(record []byte) error {
	switch {
	case c.pending != nil:
		return c.name(string(record))
	case len(record) == 0 && c.Patch != nil:
		c.listed = true
		return nil
	case len(record) > 0 && record[0] == ':':
		return c.raw(record)
	default:
		return c.count(string(record))
	}
}

// name takes a name of the pending change: the old one first, if there are two.
func (c *Changes) name(name string) error {
	if c.names--; c.names > 0 {
		c.pending.From = name
		return nil
	}
	c.pending.Path = name
	if c.pending == &c.line {
		c.pending = nil
		return c.put(c.line)
	}
	if c.Each != nil {
		c.Each(*c.pending)
	}
	// A file in conflict is told of twice: that it is, and how it differs.
	if again := name == c.conflict; !again {
		if c.Total++; c.Keep == 0 || len(c.Files) < c.Keep {
			c.Files = append(c.Files, *c.pending)
		}
	}
	c.conflict = ""
	if c.pending.Status == "U" {
		c.conflict = name
	}
	c.pending = nil
	return nil
}

func (c *Changes) raw(record []byte) error {
	if bytes.HasPrefix(record, []byte("::")) {
		return fmt.Errorf("%w: %.80q", ErrCombined, record)
	}
	f, status, err := fields(record[1:], 4)
	if err != nil {
		return err
	}
	if status == "" {
		return fmt.Errorf("a change without a state: %.80q", record)
	}
	c.pending = &Change{Status: status[:1], Mode: f[1], ID: f[3]}
	c.names = 1
	if strings.ContainsAny(status[:1], "RC") {
		c.names = 2
	}
	return nil
}

// count takes "added<TAB>deleted<TAB>path"; of a rename there is no path, and the two
// names follow.
func (c *Changes) count(text string) error {
	added, rest, ok := strings.Cut(text, "\t")
	deleted, path, more := strings.Cut(rest, "\t")
	if !ok || !more {
		return fmt.Errorf("unknown counts: %.80q", text)
	}
	c.line = Change{Path: path, Binary: added == "-"}
	if !c.line.Binary {
		var err, other error
		c.line.Added, err = strconv.Atoi(added)
		c.line.Deleted, other = strconv.Atoi(deleted)
		if err := errors.Join(err, other); err != nil {
			return fmt.Errorf("read counts: %w", err)
		}
	}
	if path == "" {
		c.pending, c.names = &c.line, 2
		return nil
	}
	return c.put(c.line)
}

// put adds counts to the change that they are about. Of a file in conflict there are
// two: none, and then its own.
func (c *Changes) put(counts Change) error {
	c.Added += counts.Added
	c.Deleted += counts.Deleted
	if c.counted > 0 && c.Files[c.counted-1].Path == counts.Path {
		c.counted--
	}
	for ; c.counted < len(c.Files); c.counted++ {
		if f := &c.Files[c.counted]; f.Path == counts.Path {
			f.Added, f.Deleted, f.Binary = counts.Added, counts.Deleted, counts.Binary
			c.counted++
			return nil
		}
	}
	return nil // it was not kept
}
