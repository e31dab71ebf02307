package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

func TestLogWriterPassesLinesOn(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newLogWriter(&log)
	for i := range 3 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	w.Close()
	if got, want := log.String(), "line 0\nline 1\nline 2\n"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
	if _, err := w.Write([]byte("late\n")); err == nil {
		t.Error("a write after Close succeeded")
	}
}

// TestLogWriterNeverBlocks writes far more than is read, and closes.
func TestLogWriterNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unread, out := io.Pipe()
		w := newLogWriter(out)
		for range 3 * logQueue {
			if _, err := w.Write([]byte("x\n")); err != nil {
				t.Fatal(err)
			}
		}
		w.Close() // gives up after logPatience on the bubble's clock
		var log strings.Builder
		read := make(chan error)
		go func() { // ends when out is closed
			_, err := io.Copy(&log, unread)
			read <- err
		}()
		<-w.ended
		out.Close()
		if err := <-read; err != nil || !strings.Contains(log.String(), "log lines were dropped") {
			t.Errorf("the reader that came late read %d bytes, %v; want to be told of dropped lines", log.Len(), err)
		}
	})
}
