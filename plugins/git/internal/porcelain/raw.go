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
	// Path is relative to the worktree. From is the old path of a renamed file, or the
	// source of a copy.
	Path, From string
	// Added and Deleted are numbers of lines. They are 0 if Binary is true.
	Added, Deleted int
	Binary         bool
}

// ErrCombined is returned for a change from several states, as for a file in conflict.
// Git does not write a list and a patch of such changes in one run.
var ErrCombined = errors.New("a change from several states")

// Changes parses the output of git diff --raw --numstat -z. Its two parts list the same
// files in the same order. With --patch, an empty record and a patch follow.
type Changes struct {
	*Records
	// Files are the changes.
	Files []Change
	// Keep is the maximum length of Files; 0 means no limit. Total, Added and Deleted
	// count all changes.
	Keep           int
	Total          int
	Added, Deleted int
	// Each, if not nil, is called for every listed change, even beyond Keep.
	Each func(Change)
	// Patch, if not nil, receives the patch as it arrives, after Files is complete.
	Patch func(part []byte) error

	pending  *Change // the change whose names are the next records
	names    int     // the number of these names
	conflict string  // the path of the last change if its status is U
	counted  int     // the number of Files with counts
	listed   bool    // the lists are complete and the patch follows
	line     Change  // the counts of the current line
}

// NewChanges returns a parser that keeps at most keep changes; 0 means no limit.
func NewChanges(keep int) *Changes {
	c := &Changes{Keep: keep}
	c.Records = NewRecords(c.record)
	return c
}

// Write parses the next part of the output. It returns only errors of Patch; Close
// returns all others.
func (c *Changes) Write(data []byte) (int, error) {
	size := len(data)
	for len(data) > 0 && !c.listed {
		end := bytes.IndexByte(data, 0) + 1
		if end == 0 {
			end = len(data)
		}
		_, _ = c.Records.Write(data[:end]) // always succeeds
		data = data[end:]
	}
	if len(data) > 0 {
		if err := c.Patch(data); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// Close returns the first error of Write, or an error if the output is incomplete.
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

// name adds a name to the pending change. If there are two, the old one is the first.
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
	// Git lists a file in conflict twice: as a conflict, and with its change.
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
		return fmt.Errorf("change without a status: %.80q", record)
	}
	c.pending = &Change{Status: status[:1], Mode: f[1], ID: f[3]}
	c.names = 1
	if strings.ContainsAny(status[:1], "RC") {
		c.names = 2
	}
	return nil
}

// count parses "added<TAB>deleted<TAB>path". The path of a rename is empty, and the two
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

// put adds counts to their change. A file in conflict has two counts: zero, and then its
// own.
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
	return nil // the change was not kept
}
