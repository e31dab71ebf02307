package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/sdk"
)

const (
	// keyFresh is how long a fetched key is reused without asking for it again.
	keyFresh = time.Minute
	// keyKept is how long background work may use the key that the last call
	// fetched.
	keyKept = 10 * time.Minute
)

// key is the API key of an embedding server. It is either in the settings or in a
// secret, which the plugin can read only during a call.
type key struct {
	secret string // the secret's name; "" if the settings hold value

	mu      sync.Mutex // guards all below
	value   string
	fetched time.Time
	failed  error // why the last call could not fetch the key
}

// fetch reads the secret on behalf of a call and reports whether there was no key
// before. Without a key, notes are saved without vectors and found by their words.
func (k *key) fetch(ctx context.Context, c *sdk.Call) (isNew bool) {
	if k.secret == "" {
		return false
	}
	k.mu.Lock()
	fresh, had := time.Since(k.fetched) < keyFresh, k.value != "" && time.Since(k.fetched) < keyKept
	k.mu.Unlock()
	if fresh {
		return false
	}
	value, err := c.Secret(ctx, k.secret)
	if ctx.Err() != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value, k.failed = strings.TrimSpace(value), err // drop the old value if the secret was revoked
	if err == nil {
		k.fetched = time.Now()
	}
	return err == nil && !had
}

// get returns the key, or an error that wraps [embed.ErrNoKey].
func (k *key) get() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.secret == "":
		return k.value, nil
	case k.failed != nil:
		return "", fmt.Errorf("%w: %w", embed.ErrNoKey, k.failed)
	case time.Since(k.fetched) >= keyKept:
		k.value = ""
		return "", fmt.Errorf("%w until the next call of a tool", embed.ErrNoKey)
	}
	return k.value, nil
}
