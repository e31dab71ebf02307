package roots

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// File is an open regular file in a [Dir]. It needs less memory than an [os.File]. Only one
// goroutine may use it at a time.
type File struct {
	fd   int
	size int64
}

var _ io.ReadSeekCloser = (*File)(nil)

// Size returns the size in bytes when the file was opened.
func (f *File) Size() int64 { return f.size }

// Read implements [io.Reader].
func (f *File) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, err := unix.Read(f.fd, p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Seek implements [io.Seeker].
func (f *File) Seek(offset int64, whence int) (int64, error) {
	return unix.Seek(f.fd, offset, whence)
}

// Close closes the file. Calling Close again does nothing.
func (f *File) Close() error { return closeOnce(&f.fd) }
