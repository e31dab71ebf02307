package roots

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What tells no size is copied to its end, however long it is; or until ctx ends.
func TestCopyOfUnknownSize(t *testing.T) {
	for _, end := range []bool{false, true} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // ends with the pipe
			defer write.Close()
			_, _ = io.CopyN(write, zeros{}, copyStep-1)
			if end {
				cancel()
			}
			_, _ = io.CopyN(write, zeros{}, 2)
		}()
		to, err := os.Create(filepath.Join(t.TempDir(), "copy"))
		if err != nil {
			t.Fatal(err)
		}
		err = copyBytes(ctx, to, read)
		info, statErr := to.Stat()
		if closeErr := to.Close(); statErr != nil || closeErr != nil {
			t.Fatal(statErr, closeErr)
		}
		if end && !errors.Is(err, context.Canceled) || !end && (err != nil || info.Size() != copyStep+1) {
			t.Errorf("%d bytes were copied, %v", info.Size(), err)
		}
		cancel()
	}
}

type zeros struct{}

// Read implements [io.Reader].
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
