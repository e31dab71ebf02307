package secrets_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/state/secrets"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // a test may have closed it
	return db
}

// TestSecretsOfUsers: each user has values of their own, which are sealed on disk and outlive the host.
func TestSecretsOfUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir)
	s := secrets.New(db, dir)
	pem := "-----BEGIN KEY-----\nabcdefgh12345\n-----END KEY-----\n"
	for _, set := range []struct{ user, name, value string }{{"ada", "key", "first-of-ada"}, {"ada", "key", pem}, {"bob", "key", "value-of-bob"}, {"ada", "two", "xyz"}} {
		if err := s.Set(t.Context(), set.user, set.name, set.value); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		user, name, want string
		set              bool
	}{{"ada", "key", pem, true}, {"bob", "key", "value-of-bob", true}, {"bob", "two", "", false}, {"", "key", "", false}, {"ada\x00", "key", "", false}} {
		if got, set, err := s.Give(t.Context(), tt.user, tt.name); err != nil || got != tt.want || set != tt.set {
			t.Errorf("%s of %s = %q, %v, %v", tt.name, tt.user, got, set, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "toolhost.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(raw), "abcdefgh12345") || strings.Contains(string(raw), "value-of-bob") {
			t.Errorf("%s holds a value, %v", file, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, secrets.KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	db = open(t, dir)
	s = secrets.New(db, dir)
	if got, _, err := s.Give(t.Context(), "ada", "key"); err != nil || got != pem {
		t.Errorf("after a restart = %q, %v", got, err)
	}
	if all, err := s.List(t.Context(), "ada"); err != nil || len(all) != 2 || all[0].Name != "key" || all[0].Set.IsZero() {
		t.Errorf("List() = %+v, %v", all, err)
	}
	for _, want := range []bool{true, false} {
		if removed, err := s.Remove(t.Context(), "ada", "key"); removed != want || err != nil {
			t.Errorf("Remove() = %v, %v", removed, err)
		}
	}
	if _, set, _ := s.Give(t.Context(), "ada", "key"); set {
		t.Error("a removed value is given")
	}
}

// TestForgedRows: a row that was moved to another user or name, changed, or sealed with another key
// gives nothing.
func TestForgedRows(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]string{
		"another user": "UPDATE secrets SET user = 'bob'",
		"another name": "UPDATE secrets SET name = 'other'",
		"changed":      "UPDATE secrets SET value = CAST(substr(value, 1, length(value) - 1) || x'00' AS BLOB)",
		"cut":          "UPDATE secrets SET value = x'01'",
		"another key":  "",
	} {
		dir := t.TempDir()
		db := open(t, dir)
		if err := secrets.New(db, dir).Set(t.Context(), "ada", "key", "of-ada-only"); err != nil {
			t.Fatal(err)
		}
		if forge == "" {
			if err := os.Remove(filepath.Join(dir, secrets.KeyFile)); err != nil {
				t.Fatal(err)
			}
		} else if err := db.Do(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), forge)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, at := range [][2]string{{"ada", "key"}, {"bob", "key"}, {"ada", "other"}} {
			if got, set, err := secrets.New(db, dir).Give(t.Context(), at[0], at[1]); got != "" || set {
				t.Errorf("%s: %v = %q, %v, %v", name, at, got, set, err)
			}
		}
	}
}

// TestValues: what is no value is refused.
func TestValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := secrets.New(open(t, dir), dir)
	for name, value := range map[string]string{"empty": "", "NUL": "a\x00b", "no text": "a\xff", "large": strings.Repeat("a", secrets.MaxValue+1)} {
		if err := s.Set(t.Context(), "ada", "key", value); err == nil || tool.AsError(err).Code != tool.InvalidArgument || strings.Contains(err.Error(), "aaaa") {
			t.Errorf("%s: Set() = %v", name, err)
		}
	}
	for i := range 110 {
		err := s.Set(context.WithoutCancel(t.Context()), "ada", "key"+strings.Repeat("x", i%50)+string(rune('a'+i/50)), "v")
		if full := i >= 100; full != (err != nil) {
			t.Fatalf("secret %d: %v", i, err)
		}
	}
}

// TestHide: what a call received is hidden in the texts of its user, and in no other text.
func TestHide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := secrets.New(open(t, dir), dir)
	give := func(user, name, value string) {
		t.Helper()
		if err := s.Set(t.Context(), user, name, value); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Give(t.Context(), user, name); err != nil {
			t.Fatal(err)
		}
	}
	const text = `"the first line\nthe second line" and the first line` + "\nthe second line, the second line"
	if err := s.Set(t.Context(), "ada", "key", "the first line\nthe second line\n"); err != nil {
		t.Fatal(err)
	}
	if got := s.Hide("ada", text); got != text {
		t.Errorf("before a call has it: %q", got)
	}
	give("ada", "key", "the first line\nthe second line\n")
	give("mallory", "x", "success-of-ada")
	give("mallory", "y", "short")
	for _, tt := range []struct{ user, text, want string }{
		{"ada", text, `"(secret key)" and (secret key), (secret key)`},
		{"bob", text, text},
		{"", text, `"(secret key)" and (secret key), (secret key)`},
		{"ada", "success-of-ada", "success-of-ada"},
		{"mallory", "success-of-ada, short", "(secret x), short"},
	} {
		if got := s.Hide(tt.user, tt.text); got != tt.want {
			t.Errorf("Hide(%q, %q) = %q, want %q", tt.user, tt.text, got, tt.want)
		}
	}
	// One user's values, however many, do not make room of another's.
	many := strings.Repeat("a line of sixteen\n", secrets.MaxValue/20)
	for i := range 50 {
		give("mallory", "z", strings.Repeat("x", i+20)+many)
	}
	if got := s.Hide("ada", "the second line"); got != "(secret key)" {
		t.Errorf("after many values of another user: %q", got)
	}
}
