package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// outsideSecret is the target of a swapped link.
const outsideSecret = "do not tell\n"

// swapName replaces a name in dir by an inside file, nothing, and a link that leads outside,
// repeatedly until stopped.
func swapName(t *testing.T, dir, inside, name, outside string) (stop func()) {
	t.Helper()
	stopped, ended := make(chan struct{}), make(chan error, 1)
	link := filepath.Join(dir, "link-"+name)
	inside, name = filepath.Join(dir, inside), filepath.Join(dir, name)
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	go func() { // ends when stopped, which the test waits for
		pause := time.NewTicker(3 * time.Millisecond) // long enough for a tool that writes durably
		defer pause.Stop()
		for n := 0; ; n++ {
			for _, step := range [][2]string{{inside, name}, {name, inside}, {link, name}, {name, link}} {
				err := os.Rename(step[0], step[1])
				for err != nil && step[1] == name { // a tool has made a directory there
					if err = os.RemoveAll(name); err == nil {
						err = os.Rename(step[0], name)
					}
				}
				if errors.Is(err, os.ErrNotExist) && step[0] == name { // a tool has moved it
					err = os.WriteFile(step[1], []byte("old\n"), 0o600)
				}
				if err != nil {
					ended <- err
					return
				}
				if n%16 == 0 {
					pause.Reset(3 * time.Millisecond)
					select {
					case <-pause.C:
					case <-stopped:
						ended <- nil
						return
					}
				}
			}
		}
	}()
	return func() {
		close(stopped)
		if err := <-ended; err != nil {
			t.Errorf("the swaps ended: %v", err)
		}
	}
}

// control reads by name files that it has found to be inside, until it has read an outside file
// or is stopped.
func control(dir string, leaked *atomic.Bool) (stop func()) {
	var stopped atomic.Bool
	ended := make(chan struct{})
	go func() { // ends when stopped, which the test waits for
		defer close(ended)
		for !stopped.Load() && !leaked.Load() {
			path, err := filepath.EvalSymlinks(filepath.Join(dir, "name", "f"))
			if err != nil || !strings.HasPrefix(path, dir+"/") {
				continue
			}
			runtime.Gosched() // as any scheduler may
			text, err := os.ReadFile(path)
			leaked.Store(err == nil && string(text) == outsideSecret)
		}
	}()
	return func() {
		stopped.Store(true)
		<-ended
	}
}
