package porcelain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Kind is the kind of an [Entry].
type Kind int

// The kinds of entries.
const (
	Changed   Kind = iota + 1 // an ordinary change
	Renamed                   // or copied
	Unmerged                  // in conflict
	Untracked                 // not known to git
)

// Entry is one file of a status.
type Entry struct {
	Kind Kind
	// Index and Worktree are the letters of git-status(1) for the staged and the
	// unstaged change. "." means no change.
	Index, Worktree string
	// Submodule is "S" and three letters for a submodule, otherwise "N...".
	Submodule string
	// Path is relative to the worktree. From is the old path of a renamed file, or the
	// source of a copy.
	Path, From string
}

// Branch is the current branch in a status.
type Branch struct {
	// Commit is the object id of HEAD, "" before the first commit.
	Commit string
	// Name is the branch, "" if HEAD is detached.
	Name string
	// Upstream is the branch that it tracks, "" if none.
	Upstream string
	// Tracked is true if the upstream exists. Only then are Ahead and Behind set.
	Tracked       bool
	Ahead, Behind int
	// Stashes is the number of stashes.
	Stashes int
}

// Status parses the output of git status --porcelain=v2 -z.
type Status struct {
	*Records
	Branch Branch
	each   func(Entry)
	rename *Entry // the entry whose From is the next record
}

// NewStatus returns a parser that calls each for every entry.
func NewStatus(each func(Entry)) *Status {
	s := &Status{each: each}
	s.Records = NewRecords(s.record)
	return s
}

// Close returns the first error of Write, or an error if the output is incomplete.
func (s *Status) Close() error {
	if err := s.Records.Close(); err != nil {
		return err
	}
	if s.rename != nil {
		return errors.New("the output ends within a rename")
	}
	return nil
}

func (s *Status) record(record []byte) error {
	if s.rename != nil {
		s.rename.From = string(record)
		s.each(*s.rename)
		s.rename = nil
		return nil
	}
	if len(record) < 3 || record[1] != ' ' {
		return fmt.Errorf("unknown record: %.80q", record)
	}
	kind, rest := record[0], record[2:]
	switch kind {
	case '#':
		return s.header(string(rest))
	case '1':
		return s.changed(rest, 7)
	case '2':
		return s.changed(rest, 8)
	case 'u':
		return s.unmerged(rest)
	case '?':
		s.each(Entry{Kind: Untracked, Index: ".", Worktree: "?", Submodule: "N...", Path: string(rest)})
		return nil
	default:
		return fmt.Errorf("unknown record: %.80q", record)
	}
}

func (s *Status) header(text string) error {
	name, value, _ := strings.Cut(text, " ")
	switch name {
	case "branch.oid":
		if value != "(initial)" {
			s.Branch.Commit = value
		}
	case "branch.head":
		if value != "(detached)" {
			s.Branch.Name = value
		}
	case "branch.upstream":
		s.Branch.Upstream = value
	case "branch.ab":
		ahead, behind, _ := strings.Cut(value, " ")
		var err, other error
		s.Branch.Ahead, err = strconv.Atoi(strings.TrimPrefix(ahead, "+"))
		s.Branch.Behind, other = strconv.Atoi(strings.TrimPrefix(behind, "-"))
		if err = errors.Join(err, other); err != nil {
			return fmt.Errorf("read branch.ab: %w", err)
		}
		s.Branch.Tracked = true
	case "stash":
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("read stash: %w", err)
		}
		s.Branch.Stashes = n
	}
	return nil // later versions of git may add headers
}

func (s *Status) changed(record []byte, words int) error {
	f, path, err := fields(record, words)
	if err != nil {
		return err
	}
	e := Entry{Kind: Changed, Submodule: f[1], Path: path}
	if e.Index, e.Worktree, err = letters(f[0]); err != nil {
		return err
	}
	if words == 8 {
		e.Kind = Renamed
		s.rename = &e
		return nil
	}
	s.each(e)
	return nil
}

func (s *Status) unmerged(record []byte) error {
	f, path, err := fields(record, 9)
	if err != nil {
		return err
	}
	e := Entry{Kind: Unmerged, Submodule: f[1], Path: path}
	if e.Index, e.Worktree, err = letters(f[0]); err != nil {
		return err
	}
	s.each(e)
	return nil
}

func letters(xy string) (index, worktree string, err error) {
	if len(xy) != 2 {
		return "", "", fmt.Errorf("state is %q, expected two letters", xy)
	}
	return xy[:1], xy[1:], nil
}
