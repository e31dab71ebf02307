package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Bounds of a template.
const (
	maxEntries = 10_000
	maxBytes   = 1 << 30
)

// ErrTemplate is the error of a workspace whose template was not copied.
var ErrTemplate = errors.New("copy the workspace's template")

var errTooLarge = errors.New("it has more than 1 GiB: make it smaller, or fetch what is large in the workspace")

// templateCopy is the copy of a template.
type templateCopy struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one call
	from, to *os.Root
	entries  int
	bytes    int64
}

// copyTemplate copies the content of a directory, with the modes of its files. It copies symbolic
// links as they are and follows none.
func copyTemplate(ctx context.Context, template string, to *os.Root) error {
	from, err := os.OpenRoot(template)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	defer func() { _ = from.Close() }() // it was only read
	c := &templateCopy{ctx: ctx, from: from, to: to}
	if err := c.run(); err != nil {
		return fmt.Errorf("%w %s: %w", ErrTemplate, template, err)
	}
	return nil
}

func (c *templateCopy) run() error { return fs.WalkDir(c.from.FS(), ".", c.entry) }

// entry copies one entry. It is a [fs.WalkDirFunc].
func (c *templateCopy) entry(name string, entry fs.DirEntry, err error) error {
	if err = cmp.Or(err, context.Cause(c.ctx)); err != nil || name == "." {
		return err
	}
	if c.entries++; c.entries > maxEntries {
		return fmt.Errorf("it has more than %d entries: make it smaller", maxEntries)
	}
	switch kind := entry.Type(); {
	case kind.IsDir():
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := c.to.Mkdir(name, 0o700); err != nil {
			return err
		}
		return c.to.Chmod(name, info.Mode().Perm()|0o700) // whatever the umask is
	case kind == fs.ModeSymlink:
		target, err := c.from.Readlink(name)
		if err != nil {
			return err
		}
		return c.to.Symlink(target, name)
	case kind.IsRegular():
		return c.file(name)
	}
	return notCopied(name, entry.Type())
}

func notCopied(name string, mode fs.FileMode) error {
	return fmt.Errorf("%s has the type %v: expected a file, a directory or a symbolic link", name, mode.Type())
}

func (c *templateCopy) file(name string) (err error) {
	in, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for a writer
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // replaced meanwhile
		return notCopied(name, info.Mode())
	}
	out, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, &bounded{c, in}); err != nil {
		return err
	}
	return out.Chmod(info.Mode().Perm())
}

// bounded reads a file of a template until the context ends or the template is too large.
type bounded struct {
	copy *templateCopy
	file *os.File
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := context.Cause(b.copy.ctx); err != nil {
		return 0, err
	}
	n, err := b.file.Read(p)
	if b.copy.bytes += int64(n); b.copy.bytes > maxBytes {
		return 0, errTooLarge
	}
	return n, err
}
