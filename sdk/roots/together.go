package roots

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Change is a change at one place; see [ChangeAll].
type Change struct {
	// Target is the place. It is locked with the targets of the other changes.
	Target *Target
	// Remove removes the file.
	Remove bool
	// Content is the new content, unless Remove is set.
	Content []byte
	// Like, if not nil, is a place with a file whose mode and owner the new file gets, as for
	// a moved file. Nil keeps the mode and owner of the existing file.
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

// staging is a set of prepared changes.
type staging struct {
	all  []staged
	made []parents
	// failed says why the changes were not made.
	failed error
}

// staged is one prepared change.
type staged struct {
	Change
	temp *temporary // nil to remove the file
	old  []byte     // the previous content
	// taken means that the place was changed; placed is the file that was put there, or nil.
	taken  bool
	placed fs.FileInfo
}

// stage prepares the changes. On error, nothing has changed.
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

// check returns why the change cannot be made, or nil.
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
	t.leave() // limits the number of open files
	if t.info == nil {
		return nil
	}
	return t.unchanged()
}

// prepare keeps the old content and writes the new content to a temporary file.
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

// read returns the content of the file.
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

// stage writes a temporary file, durably, with the mode and owner of like if that is not
// nil.
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

// setExecutable makes a file executable for those who can read it, or for no one, according to
// mode; 0 changes nothing.
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

// take makes the change durably.
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

// change makes the change and returns the directory in which it did.
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

// takeBack undoes the changes before the one that failed, and returns an error that says so.
func (s *staging) takeBack(failed int, failure error) error {
	s.failed = failure
	var back, stuck []string
	for i := range s.all {
		if c := &s.all[i]; c.temp != nil && !c.taken {
			c.temp.discard() // frees its disk space
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
		told.Hint = "look at them; they have the changed content, or what another program has written since"
	case len(back) > 0:
		told.Message += "; these files, which were changed before, were put back: " + strings.Join(back, ", ")
	default:
		told.Message += nothingDone
	}
	return &told
}

// putBack restores the place unless another program has changed it since.
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
	_ = t.dir.Chtimes(temp.name, before.ModTime(), before.ModTime()) // the file counts as restored even without its time
	return t.commit(temp)
}

// end closes everything. If the changes were not made, it removes what was created for
// them.
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

// named adds the file's name to an error, and that nothing was done.
func (t *Target) named(err error) error {
	told := t.about(err)
	told.Message += nothingDone
	return &told
}

// about adds the name of the file to an error.
func (t *Target) about(err error) tool.Error {
	told := *tool.AsError(err)
	name := tool.VisibleName(t.String())
	told.Message = strings.TrimSuffix(told.Message, nothingDone)
	if !strings.Contains(told.Message, name) {
		told.Message = name + ": " + told.Message
	}
	return told
}
