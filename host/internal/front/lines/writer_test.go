package lines_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/lines"
)

// TestWriter writes a line that is read, gives up a line that is not read, and closes the writer
// during a write.
func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		out := lines.NewWriter(w)
		read := make(chan string)
		go func() {
			line := make([]byte, 8)
			n, err := r.Read(line)
			if err != nil {
				t.Error(err)
			}
			read <- string(line[:n])
		}()
		if err := out.Write(nil, []byte("a")); err != nil {
			t.Fatal(err)
		}
		if got := <-read; got != "a\n" {
			t.Errorf("read %q, want one line", got)
		}

		if got := out.Unread(); got != 0 {
			t.Errorf("Unread without a write: %v, want 0", got)
		}
		giveUp := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(giveUp) })
		if err := out.Write(giveUp, []byte("b")); !errors.Is(err, lines.ErrGivenUp) {
			t.Errorf("a write that is not read: %v, want %v", err, lines.ErrGivenUp)
		}
		giveUp = make(chan struct{})
		time.AfterFunc(time.Second, func() { close(giveUp) })
		if err := out.Write(giveUp, []byte("c")); !errors.Is(err, lines.ErrGivenUp) {
			t.Errorf("a write behind it: %v, want %v", err, lines.ErrGivenUp)
		}
		if got := out.Unread(); got != 2*time.Second {
			t.Errorf("Unread = %v, want the 2s since the first write began", got)
		}

		time.AfterFunc(time.Second, out.Close)
		if err := out.Write(nil, []byte("d")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a write when it is closed: %v, want %v", err, io.ErrClosedPipe)
		}
		if err := r.Close(); err != nil { // ends the write that waits
			t.Fatal(err)
		}
		<-out.Closed()
	})
}
