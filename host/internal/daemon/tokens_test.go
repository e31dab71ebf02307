package daemon

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/state/store"
)

// TestRevokedAndClockSetBack: a token that is revoked, or whose grace was over once, does
// not count again in a host that starts with a clock that was set back.
func TestRevokedAndClockSetBack(t *testing.T) {
	secret, sum := auth.NewToken()
	graced, gracedSum := auth.NewToken()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.hcl")
	block := func(name, sum string) string {
		return fmt.Sprintf("token %q {\n sha256 = %q\n user = \"ci\"\n roles = [\"agent\"]\n}\n", name, sum)
	}
	text := `
workspace = "ws"
state_dir = "state"
auth {
  local_user = "ada"
` + block("ci", sum) + block("graced", gracedSum) + "}\n"
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "ws"), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, config.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	running := func(do func(d *Daemon)) {
		t.Helper()
		d, err := New(t.Context(), Options{Config: cfg, Version: "1", Logger: hclog.NewNullLogger()})
		if err != nil {
			t.Fatal(err)
		}
		do(d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// set has every end be an hour from now: so it is by a clock that was set back.
	set := func() {
		t.Helper()
		db, err := store.Open(t.Context(), store.Options{Dir: cfg.StateDir})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Do(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(context.WithoutCancel(t.Context()), "UPDATE revoked_tokens SET revoked = ?", time.Now().Add(time.Hour).UnixMilli())
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(d *Daemon, when string, secrets ...string) {
		t.Helper()
		for _, secret := range secrets {
			if caller, ok := d.parts.tokens.Lookup(secret); ok {
				t.Errorf("%s the revoked token of %s counts", when, caller.Client)
			}
		}
	}
	revoke := func(d *Daemon, name string, grace time.Duration) {
		t.Helper()
		if err := d.RevokeToken(t.Context(), name, grace, auth.Caller{User: "ada"}); err != nil {
			t.Fatal(err)
		}
	}
	running(func(d *Daemon) {
		revoke(d, "ci", 0)
		refused(d, "at once", secret)
	})
	set()
	running(func(d *Daemon) {
		refused(d, "with the clock set back", secret)
		revoke(d, "graced", time.Nanosecond)
	})
	running(func(*Daemon) {}) // which sees that the grace is over
	set()
	running(func(d *Daemon) { refused(d, "with the clock set back again", secret, graced) })
}
