package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxDelivery bounds one attempt to deliver a message.
	maxDelivery = 10 * time.Second
	// maxAnswer bounds what is read of the answer to a webhook, and its header.
	maxAnswer = 64 << 10
	// maxPrinted bounds what a command prints, and maxLogged what the log repeats of it.
	maxPrinted = 64 * tool.KiB
	maxLogged  = 500
	// minSecret is the least length of a secret in bytes, as Standard Webhooks requires.
	minSecret = 24
)

// Secret signs messages.
type Secret string

// secretPrefix begins a secret in base64 (Standard Webhooks).
const secretPrefix = "whsec_"

// Check reports a secret that cannot be used.
func (s Secret) Check() error {
	key, err := s.key()
	switch {
	case err != nil:
		return err
	case len(key) < minSecret:
		return fmt.Errorf("it has %d bytes, expected at least %d", len(key), minSecret)
	}
	return nil
}

func (s Secret) key() ([]byte, error) {
	encoded, ok := strings.CutPrefix(string(s), secretPrefix)
	if !ok {
		return []byte(s), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("after " + secretPrefix + ", base64 is expected")
	}
	return key, nil
}

// sign returns the signature of a message: "v1," and HMAC-SHA256 of id, timestamp and body in base64
// (Standard Webhooks, "Signature scheme").
func (s Secret) sign(id, timestamp string, body []byte) (string, error) {
	key, err := s.key()
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}

// webhooks is the client of all webhooks. The host to dial is the administrator's word; a redirect is
// not followed, since it would be another's.
func webhooks() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			MaxResponseHeaderBytes: maxAnswer,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true, // messages are rare
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// deliver delivers a message, in one attempt.
func (q *sender) deliver(ctx context.Context, n *Notifier, m Message) error {
	body, err := m.body()
	if err != nil {
		return err
	}
	if n.Webhook == "" {
		return q.execute(ctx, n, m, body)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxDelivery, fmt.Errorf("no answer within %v", maxDelivery))
	defer cancel()
	return post(ctx, n, m, body)
}

// post sends a message to a webhook.
func post(ctx context.Context, n *Notifier, m Message, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.Webhook, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL cannot be used")
	}
	timestamp := strconv.FormatInt(m.Timestamp.Unix(), 10)
	signature, err := n.Secret.sign(m.ID, timestamp, body)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "toolhost",
		"webhook-id": m.ID, "webhook-timestamp": timestamp, "webhook-signature": signature,
	} {
		request.Header.Set(name, value)
	}
	answer, err := webhooks().Do(request)
	switch failed, ok := errors.AsType[*url.Error](err); {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case ok:
		return failed.Err // without the URL, which can hold a secret
	case err != nil:
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // the answer says nothing
	switch code := answer.StatusCode; {
	case code >= 300 && code < 400:
		return fmt.Errorf("the webhook answered %d: redirects are not followed", code)
	case code < 200 || code > 299:
		return fmt.Errorf("the webhook answered %d", code)
	}
	return nil
}

// execute gives a message to the command of a notifier.
func (q *sender) execute(ctx context.Context, n *Notifier, m Message, body []byte) error {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	out, err := sandbox.Output(ctx, sandbox.Command{
		Argv: n.Command, Env: append(env, m.facts()...), Input: append(body, '\n'), Timeout: maxDelivery, MaxOutput: maxPrinted,
	})
	if text := strings.TrimSpace(string(out)); text != "" {
		q.s.logger.Info("a command printed", "notify", n.Name, "message", m.ID, "output", excerpt.Printable(text, maxLogged))
	}
	if err != nil {
		return fmt.Errorf("the command %w", err)
	}
	return nil
}
