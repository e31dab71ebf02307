package roots

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Change is the change of one place; see [ChangeAll].
type Change struct {
	// Target is the place. It is locked with the targets of the other changes.
	Target *Target
	// Remove means that the file is removed.
	Remove bool
	// Content is the new content if the file is not removed.
	Content []byte
	// Like, if not nil, is a place with a file whose mode and owner are used, as for a
	// file that is moved. If it is nil, the mode and owner of the existing file are
	// kept.
	Like *Target
	// Mode, if not 0, sets whether the file is executable.
	Mode fs.FileMode
}

// ChangeAll makes all changes in order, or none. The targets may belong to several
// [Roots]. Each new file is complete and durable under a temporary name before the
// first one replaces its place. If a later change then fails, ChangeAll undoes the
// earlier ones; the error lists those that could not be undone.
//
// After a crash, each file is either the old one or the new one, but some files may be
// new and others old.
func ChangeAll(changes []Change) error {
	s, err := stage(changes)
	if err != nil {
		return err
	}
	defer s.end()
	for i := range s.all {
		if err := s.all[i].take(); err != nil {
			return s.takeBack(i, err)
		}
	}
	return nil
}

// staging is changes that are about to be made.
type staging struct {
	all  []staged
	made []parents
	// failed is why they were not made.
	failed error
}

// staged is one of them.
type staged struct {
	Change
	temp *temporary // nil if the file goes
	old  []byte     // what there was
	// taken says that the place was changed; placed is what is there since, nil
	// if nothing is.
	taken  bool
	placed fs.FileInfo
}

// stage prepares the changes. On every error nothing is changed.
func stage(changes []Change) (_ *staging, err error) {
	s := &staging{all: make([]staged, len(changes))}
	defer func() {
		if err != nil {
			s.failed = err
			s.end()
		}
	}()
	for i, c := range changes {
		s.all[i].Change = c
		if err := s.all[i].check(); err != nil {
			return nil, c.Target.named(err)
		}
	}
	for i := range s.all {
		made, err := s.all[i].prepare()
		if made.dir != nil {
			s.made = append(s.made, made)
		}
		if err != nil {
			return nil, s.all[i].Target.named(err)
		}
	}
	return s, nil
}

// check says why the change cannot be made.
func (c *staged) check() error {
	t := c.Target
	if c.Remove {
		if err := t.Removable(); err != nil {
			return err
		}
		if err := t.replaceable(); err != nil {
			return err
		}
	} else if err := t.Writable(); err != nil {
		return err
	}
	t.leave() // not to hold more files open than must be
	if t.info == nil {
		return nil
	}
	return t.unchanged()
}

// prepare keeps what is there, and writes what will be there.
func (c *staged) prepare() (made parents, err error) {
	t := c.Target
	defer t.leave()
	if t.info != nil {
		if c.old, err = t.read(); err != nil {
			return made, err
		}
	}
	if c.Remove {
		return made, nil
	}
	if made, err = t.makeParents(); err != nil {
		return made, err
	}
	t.roots.writers.sweep(t.dir)
	like := t.info
	if c.Like != nil {
		like = c.Like.info
	}
	c.temp, err = t.stage(c.Content, like, c.Mode)
	return made, err
}

// read returns what the file holds.
func (t *Target) read() ([]byte, error) {
	f, err := t.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, t.explain(err)
	}
	return content, nil
}

// stage writes a temporary file, durably, with mode and owner of the file that
// it is like, if there is one.
func (t *Target) stage(content []byte, like fs.FileInfo, mode fs.FileMode) (_ *temporary, err error) {
	temp, err := newTemporary(t.dir, 0o600)
	if err != nil {
		return nil, t.explain(err)
	}
	defer func() {
		if err != nil {
			temp.discard()
		}
	}()
	if _, err := temp.Write(content); err != nil {
		return nil, t.explain(err)
	}
	if like != nil {
		keepOwner(temp.File, like)
	} else if err := temp.Chmod(t.inherited(newFile)); err != nil {
		return nil, t.explain(err)
	}
	if err := setExecutable(temp.File, mode); err != nil {
		return nil, t.explain(err)
	}
	if err := temp.Sync(); err != nil {
		return nil, t.explain(err)
	}
	return temp, nil
}

// setExecutable lets those execute the file who may read it, or nobody, as mode
// says; 0 says nothing.
func setExecutable(f *os.File, mode fs.FileMode) error {
	const executable = 0o111
	if mode == 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	has := info.Mode().Perm()
	wanted := has &^ executable
	if mode&executable != 0 {
		wanted = has | has>>2&executable
	}
	if wanted == has {
		return nil
	}
	return f.Chmod(wanted)
}

// take makes the change, durably.
func (c *staged) take() error {
	t := c.Target
	defer t.leave()
	dir, err := c.change()
	if err != nil {
		return err
	}
	if err := syncDirectory(dir); err != nil {
		return t.explain(err)
	}
	return nil
}

// change makes the change in the directory that it returns.
func (c *staged) change() (dir *os.File, err error) {
	t := c.Target
	if c.temp != nil {
		placed, err := c.temp.Stat()
		if err != nil {
			return nil, t.explain(err)
		}
		if dir, err = t.put(c.temp); err != nil {
			return nil, err
		}
		c.taken, c.placed = true, placed
		return dir, nil
	}
	if dir, err = t.directory(); err != nil {
		return nil, err
	}
	defer lockDirectory(dir)()
	if err := t.unchanged(); err != nil {
		return nil, t.explain(err)
	}
	if err := t.dir.Remove(t.base); err != nil {
		return nil, t.explain(err)
	}
	c.taken = true
	return dir, nil
}

// takeBack puts back what was changed before one change failed, and says so.
func (s *staging) takeBack(failed int, failure error) error {
	s.failed = failure
	var back, stuck []string
	for i := range s.all {
		if c := &s.all[i]; c.temp != nil && !c.taken {
			c.temp.discard() // its room may be needed
		}
	}
	for i := range slices.Backward(s.all) {
		c, t := &s.all[i], s.all[i].Target
		if !c.taken {
			continue
		}
		if err := c.putBack(); err != nil {
			stuck = append(stuck, t.about(err).Message)
			continue
		}
		back = append(back, tool.VisibleName(t.String()))
	}
	told := s.all[failed].Target.about(failure)
	switch {
	case len(stuck) > 0:
		told.Message += "; and these files, which were changed before, could not be put back: " + strings.Join(stuck, ", ")
		told.Hint = "look at them; they hold what the change made of them, or what somebody else has written since"
	case len(back) > 0:
		told.Message += "; these files, which were changed before, were put back: " + strings.Join(back, ", ")
	default:
		told.Message += nothingDone
	}
	return &told
}

// putBack makes the place what it was, if nobody else has changed it since.
func (c *staged) putBack() error {
	t := c.Target
	defer t.leave()
	before := t.info
	t.info = c.placed
	if t.info != nil {
		now, err := t.dir.Lstat(t.base)
		if err != nil || !os.SameFile(now, c.placed) || now.Size() != c.placed.Size() || !now.ModTime().Equal(c.placed.ModTime()) {
			return t.replaced()
		}
		t.info = now
	}
	if before == nil {
		return t.Remove()
	}
	temp, err := t.stage(c.old, before, 0)
	if err != nil {
		return err
	}
	defer temp.discard()
	_ = t.dir.Chtimes(temp.name, before.ModTime(), before.ModTime()) // it is put back all the same
	return t.commit(temp)
}

// end closes what is open and, if the changes were not made, removes what was
// made for them.
func (s *staging) end() {
	for i := range s.all {
		if temp := s.all[i].temp; temp != nil {
			temp.discard()
		}
	}
	for i := range slices.Backward(s.made) {
		s.made[i].end(s.failed)
	}
}

// named says which of several files an error is about, and that nothing was
// done.
func (t *Target) named(err error) error {
	told := t.about(err)
	told.Message += nothingDone
	return &told
}

// about says which of several files an error is about.
func (t *Target) about(err error) tool.Error {
	told := *tool.AsError(err)
	name := tool.VisibleName(t.String())
	told.Message = strings.TrimSuffix(told.Message, nothingDone)
	if !strings.Contains(told.Message, name) {
		told.Message = name + ": " + told.Message
	}
	return told
}
