// Package secrets keeps the values that users set for their own calls. They are sealed in the host's
// database with a key of the state directory. Once a call has received one, it is hidden in the texts of
// that user's calls and processes, and in no others: a user chooses the values.
package secrets

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// KeyFile is the name of the key in the state directory.
const KeyFile = "secrets.key"

const (
	// MaxValue bounds a value, in bytes.
	MaxValue = 64 << 10
	// maxSecrets bounds the values of one user.
	maxSecrets = 100
)

// Store keeps the values. It is safe for concurrent use.
type Store struct {
	db     *store.Store
	dir    string
	sealer func() (cipher.AEAD, error) // makes the key at the first use

	hidden hidden
}

// New returns the values in a database, which stays open until the caller closes it. dir is the state
// directory.
func New(db *store.Store, dir string) *Store {
	s := &Store{db: db, dir: dir, hidden: hidden{byUser: make(map[string]*ofUser)}}
	s.sealer = sync.OnceValues(s.readKey)
	return s
}

// readKey returns the cipher of the key, which it makes if there is none.
func (s *Store) readKey() (cipher.AEAD, error) {
	text, err := auth.EnsureKey(s.dir, KeyFile)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, []byte(text), nil, "toolhost secrets of users", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// place is what a sealed value is bound to, so that no row can stand for another.
func place(user, name string) []byte { return []byte(name + "\x00" + user) } // a name has no NUL

// Info describes a value without it.
type Info struct {
	Name string    `json:"name"`
	Set  time.Time `json:"set"`
}

// Set keeps the value of a user for a secret, and replaces an earlier one. The error of a value that
// cannot be kept is a [*tool.Error].
func (s *Store) Set(ctx context.Context, user, name, value string) error {
	switch {
	case value == "":
		return tool.Errorf(tool.InvalidArgument, "the value is empty").WithHint("remove the secret instead")
	case len(value) > MaxValue:
		return tool.Errorf(tool.InvalidArgument, "the value has %d bytes, at most %d are possible", len(value), MaxValue)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return tool.Errorf(tool.InvalidArgument, "the value is not a text: it has a NUL character or is not UTF-8").WithHint("encode it, for example with base64")
	}
	seal, err := s.sealer()
	if err != nil {
		return fmt.Errorf("seal a secret: %w", err)
	}
	sealed := seal.Seal(nil, nil, []byte(value), place(user, name)) //nolint:gosec // the cipher makes the nonce
	return s.db.Do(ctx, func(tx *sql.Tx) error {
		var others int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM secrets WHERE user = ? AND name <> ?", user, name).Scan(&others); err != nil {
			return err
		}
		if others >= maxSecrets {
			return tool.Errorf(tool.ResourceExhausted, "the user has %d secrets already", others).WithHint("remove one that is no longer used")
		}
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO secrets (user, name, value, set_at) VALUES (?, ?, ?, ?)", user, name, sealed, time.Now().UnixMilli())
		return err
	})
}

// Remove removes the value of a user, and reports whether there was one.
func (s *Store) Remove(ctx context.Context, user, name string) (removed bool, err error) {
	err = s.db.Do(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM secrets WHERE user = ? AND name = ?", user, name)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		removed = rows > 0
		return err
	})
	return removed, err
}

// List describes the values of a user, by name.
func (s *Store) List(ctx context.Context, user string) ([]Info, error) {
	rows, err := s.db.Read().QueryContext(ctx, "SELECT name, set_at FROM secrets WHERE user = ? ORDER BY name", user)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []Info{}
	for rows.Next() {
		var info Info
		var at int64
		if err := rows.Scan(&info.Name, &at); err != nil {
			return nil, err
		}
		info.Set = time.UnixMilli(at).UTC()
		all = append(all, info)
	}
	return all, rows.Err()
}

// Give returns the value of a user for a call, which [Store.Hide] hides from then on. set is false if
// there is none.
func (s *Store) Give(ctx context.Context, user, name string) (value string, set bool, err error) {
	var sealed []byte
	err = s.db.Read().QueryRowContext(ctx, "SELECT value FROM secrets WHERE user = ? AND name = ?", user, name).Scan(&sealed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	seal, err := s.sealer()
	if err != nil {
		return "", false, fmt.Errorf("open a secret: %w", err)
	}
	opened, err := seal.Open(nil, nil, sealed, place(user, name))
	if err != nil {
		return "", false, fmt.Errorf("the secret %s of %s was sealed with another %s, or was changed: it must be set again", name, user, KeyFile)
	}
	value = string(opened)
	s.hidden.add(user, name, value)
	return value, true, nil
}
