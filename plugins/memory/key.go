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
	// keyFresh is for how long a key is not asked for again.
	keyFresh = time.Minute
	// keyKept is for how long what runs in the background has the key of the last
	// call that has brought one.
	keyKept = 10 * time.Minute
)

// key is the key of an embedder that is a server: as the settings have it, or a
// secret, which calls bring along.
type key struct {
	secret string // its name; "" if value is of the settings

	mu      sync.Mutex // guards all below
	value   string
	brought time.Time
	failed  error // why the last call could bring none
}

// bring gets the key on behalf of a call, and reports whether there was none
// before. Without one notes are saved and found by their words.
func (k *key) bring(ctx context.Context, c *sdk.Call) (news bool) {
	if k.secret == "" {
		return false
	}
	k.mu.Lock()
	fresh, had := time.Since(k.brought) < keyFresh, k.value != "" && time.Since(k.brought) < keyKept
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
	k.value, k.failed = strings.TrimSpace(value), err // a secret that was taken back is not kept
	if err == nil {
		k.brought = time.Now()
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
	case time.Since(k.brought) >= keyKept:
		k.value = ""
		return "", fmt.Errorf("%w: it comes with the next call", embed.ErrNoKey)
	}
	return k.value, nil
}
