package roots

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyStep is how much of a file is copied between two looks at the context.
const copyStep = 64 << 20

// copyBytes copies a file to another, which is empty, but not its holes.
func copyBytes(ctx context.Context, to, from *os.File) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		begin, end, err := dataFrom(from, at, info.Size())
		if err != nil {
			return err
		}
		if err := copyRange(ctx, to, from, begin, end); err != nil {
			return err
		}
		at = end
	}
	if info.Size() > 0 {
		if now, err := from.Stat(); err != nil || now.Size() < info.Size() {
			return errors.Join(errReplaced, err)
		}
		return to.Truncate(info.Size()) // it may end with a hole
	}
	for { // of unknown size
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, copyStep); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// dataFrom returns where in a file the next data is, not beyond size. A file
// system that does not know has no holes.
func dataFrom(f *os.File, at, size int64) (begin, end int64, err error) {
	begin, err = unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size, nil // only a hole is left
	}
	if errors.Is(err, unix.EINVAL) {
		return at, size, nil
	}
	if err != nil {
		return 0, 0, err
	}
	end, err = unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE)
	if err != nil {
		return 0, 0, err
	}
	return min(begin, size), min(end, size), nil
}

// copyRange copies what is between two places to the same ones in another file.
func copyRange(ctx context.Context, to, from *os.File, begin, end int64) error {
	for begin < end {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := from.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := to.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		n, err := io.CopyN(to, from, min(copyStep, end-begin))
		begin += n
		if errors.Is(err, io.EOF) {
			return errReplaced // it has shrunk
		}
		if err != nil {
			return err
		}
	}
	return nil
}
