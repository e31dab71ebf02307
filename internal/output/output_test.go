package output_test

import (
	"io"
	"os"
	"testing"

	"github.com/toolhost/toolhost/internal/output"
)

func TestReaderEndsThoughSomethingHoldsThePipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // after the reader has ended
	reader := output.NewReader(r)
	defer reader.Close()
	if _, err := w.WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	reader.End()
	got, err := io.ReadAll(reader)
	if err != nil || string(got) != "last words" {
		t.Errorf("ReadAll() = %q, %v", got, err)
	}
}

func TestEndWakesARead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	reader := output.NewReader(r)
	defer reader.Close()
	read := make(chan error)
	go func() { // ends at the reader's end, for which the test waits
		_, err := io.ReadAll(reader)
		read <- err
	}()
	reader.End()
	if err := <-read; err != nil {
		t.Error(err)
	}
}
