package egress

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// minOutgoing is the length from which a secret is looked for: a shorter text may occur by chance.
const minOutgoing = 8

// A process never has the secrets that the proxy adds to requests, unless a server has sent one back.
// Where the proxy sees the plain text, such a secret does not go to another host.

// foreignSecrets returns the credentials of other destinations, by the names of their secrets.
func (r *Rules) foreignSecrets(to Target) map[string][]byte {
	var found map[string][]byte
	for i := range r.Inject {
		c := &r.Inject[i]
		value := strings.TrimSpace(c.Value)
		if c.PerUser || len(value) < minOutgoing || c.Host.contains(to, true, true) {
			continue
		}
		if found == nil {
			found = make(map[string][]byte)
		}
		found[c.Secret] = []byte(value)
	}
	return found
}

// keepSecrets refuses a request that contains a secret of another destination in its URL or its
// headers, and makes its body end with an error before such a secret.
func (c *connection) keepSecrets(r *http.Request, to Target) *tool.Error {
	secrets := c.proxy.opts.Rules.foreignSecrets(to)
	if len(secrets) == 0 {
		return nil
	}
	texts := []string{r.URL.RequestURI()}
	if decoded, err := url.PathUnescape(r.URL.RequestURI()); err == nil {
		texts = append(texts, decoded)
	}
	if user, password, ok := r.BasicAuth(); ok {
		texts = append(texts, user, password)
	}
	for name, values := range r.Header {
		texts = append(texts, name)
		texts = append(texts, values...)
	}
	for name, secret := range secrets {
		for _, text := range texts {
			if strings.Contains(text, string(secret)) {
				return leaks(to, name)
			}
		}
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &keptBody{ReadCloser: r.Body, to: to, secrets: secrets}
	}
	return nil
}

func leaks(to Target, secret string) *tool.Error {
	return refusal(to, "the request contains the secret "+secret+", which is for another host")
}

// keptBody is a body that ends with an error before it would contain a secret.
type keptBody struct {
	io.ReadCloser

	to      Target
	secrets map[string][]byte
	held    []byte // read, and not yet returned
	err     error  // of the body, after held
}

// Read implements [io.Reader]. It returns no byte that a secret could still begin with.
func (b *keptBody) Read(p []byte) (int, error) {
	for {
		keep := 0
		for name, secret := range b.secrets {
			if bytes.Contains(b.held, secret) {
				b.held, b.err = nil, leaks(b.to, name)
				return 0, b.err
			}
			keep = max(keep, len(secret)-1)
		}
		if b.err != nil {
			keep = 0
		}
		if ready := len(b.held) - keep; ready > 0 {
			n := copy(p, b.held[:ready])
			b.held = b.held[n:]
			return n, nil
		}
		if b.err != nil {
			return 0, b.err
		}
		const part = 32 << 10
		b.held = append(make([]byte, 0, len(b.held)+part), b.held...)
		n, err := b.ReadCloser.Read(b.held[len(b.held):cap(b.held)])
		b.held, b.err = b.held[:len(b.held)+n], err
	}
}
