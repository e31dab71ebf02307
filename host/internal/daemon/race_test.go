package daemon_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
)

// loadWith is load with further blocks.
func loadWith(t *testing.T, blocks string) *config.Config {
	t.Helper()
	path := load(t, "").Files[0]
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(blocks)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, config.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestReloadWhileServing reloads the configuration while the listener is requested: the race
// detector finds unsynchronized access.
func TestReloadWhileServing(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d := build(t, loadWith(t, fmt.Sprintf("server { listen = %q }\n", taken.Addr())))
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	reloaded := make(chan error, 1)
	go func() { reloaded <- d.Reload(t.Context(), "", auth.Caller{User: "ada"}, "cli") }() // ends with the reload
	for {
		if _, err := d.ServeHTTP(t.Context(), nil); err == nil {
			t.Fatal("ServeHTTP() listens on a port that is taken")
		}
		select {
		case err := <-reloaded:
			if err != nil {
				t.Errorf("Reload() = %v", err)
			}
			return
		default:
		}
	}
}
