package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// Login is a token for a host, and how its certificate is checked.
type Login struct {
	// URL is the [Origin] of the host.
	URL   string `json:"url"`
	Token string `json:"token"`
	// CA is that of [Options].
	CA string `json:"ca,omitempty"`
}

// LoginLink returns a link that logs in a browser as the client's caller, once.
func (c *Client) LoginLink(ctx context.Context) (httpapi.LoginLink, error) {
	return post[httpapi.LoginLink](ctx, c, "/v1/logins", nil)
}

// EndLogins logs out all browsers of the client's caller.
func (c *Client) EndLogins(ctx context.Context) (httpapi.EndedLogins, error) {
	return ask[httpapi.EndedLogins](ctx, c, request{method: http.MethodDelete, path: "/v1/logins"})
}

// Bounds of a [Login].
const (
	MaxToken = 4 << 10
	MaxCA    = 256 << 10
	maxLogin = 1 << 20
)

// loginFile returns the file of a host: one for each, so that no two commands change the same.
func loginFile(dir, origin string) string {
	return filepath.Join(dir, url.QueryEscape(origin)+".json")
}

// SaveLogin stores a login in a directory, in a file that only its owner can read, and replaces
// an earlier one for the host. After a crash, the file is the earlier or the new one.
func SaveLogin(dir string, l Login) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("store the token: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("store the token: %w", err)
	}
	f, err := os.CreateTemp(dir, ".login-*") // mode 0600
	if err != nil {
		return fmt.Errorf("store the token: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), loginFile(dir, l.URL))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("store the token: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// ReadLogin returns the login for a host. If there is none, the error is [fs.ErrNotExist]. It
// refuses a file that others can read, that belongs to another account, or that is for another
// host.
func ReadLogin(dir, origin string) (Login, error) {
	path := loginFile(dir, origin)
	text, err := auth.ReadPrivate(path, "the login", "log in again with another token, and revoke this one", maxLogin)
	if err != nil {
		return Login{}, err
	}
	var l Login
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.URL != origin || l.Token == "" {
		return Login{}, fmt.Errorf("the login %s is damaged: it is not a token for %s", path, origin)
	}
	return l, nil
}

// RemoveLogin removes the login for a host, readable or not. If there is none, the error is
// [fs.ErrNotExist].
func RemoveLogin(dir, origin string) error {
	if err := os.Remove(loginFile(dir, origin)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return fmt.Errorf("remove the login: %w", err)
	}
	return nil
}
