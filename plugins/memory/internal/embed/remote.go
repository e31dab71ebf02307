package embed

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxText bounds the bytes of a text that are sent to a server.
	maxText = 8 << 10
	// maxAnswer bounds the bytes of a response.
	maxAnswer = 64 << 20
	// maxDimension bounds the dimension of a vector.
	maxDimension = 16384
	// attempts is the maximum number of requests for one batch.
	attempts = 3
	// longestPause bounds the wait that a server can ask for.
	longestPause = 10 * time.Second
)

// RemoteOptions describe a server.
type RemoteOptions struct {
	// BaseURL is the server's address.
	BaseURL string
	// Model is the model's name.
	Model string
	// Key returns the bearer token to send, "" for none. A nil Key sends none. Its
	// error should wrap [ErrNoKey].
	Key func() (string, error)
	// Timeout bounds one request.
	Timeout time.Duration
	// Pause is the wait before the second request. It doubles before the third. 0
	// means 200 ms.
	Pause time.Duration
	// Client makes the requests. The default is a client without a proxy.
	Client *http.Client
}

// Remote asks a server for vectors. Make it with [NewOllama] or [NewOpenAI].
type Remote struct {
	opts    RemoteOptions
	kind    string
	name    string
	path    string
	extract func([]byte) ([][]float32, error)

	mu        sync.Mutex // guards dimension
	dimension int        // of the first vector; 0 before
}

var _ Embedder = (*Remote)(nil)

// NewOllama returns an embedder that uses the API of Ollama (POST /api/embed).
func NewOllama(opts RemoteOptions) (*Remote, error) {
	opts.BaseURL = cmp.Or(opts.BaseURL, "http://127.0.0.1:11434")
	opts.Model = cmp.Or(opts.Model, "nomic-embed-text")
	return newRemote(opts, "ollama", "/api/embed", func(data []byte) ([][]float32, error) {
		var answer struct {
			Embeddings [][]float32 `json:"embeddings"`
		}
		err := json.Unmarshal(data, &answer)
		return answer.Embeddings, err
	})
}

// NewOpenAI returns an embedder that uses the API of OpenAI (POST
// BaseURL/embeddings).
func NewOpenAI(opts RemoteOptions) (*Remote, error) {
	opts.BaseURL = cmp.Or(opts.BaseURL, "https://api.openai.com/v1")
	opts.Model = cmp.Or(opts.Model, "text-embedding-3-small")
	return newRemote(opts, "openai", "/embeddings", func(data []byte) ([][]float32, error) {
		var answer struct {
			Data []struct {
				Index     int       `json:"index"`
				Embedding []float32 `json:"embedding"`
			} `json:"data"`
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return nil, err
		}
		vectors := make([][]float32, len(answer.Data))
		for _, d := range answer.Data {
			if d.Index < 0 || d.Index >= len(vectors) || vectors[d.Index] != nil {
				return nil, fmt.Errorf("the index %d is out of range or repeated", d.Index)
			}
			vectors[d.Index] = d.Embedding
		}
		return vectors, nil
	})
}

func newRemote(opts RemoteOptions, kind, path string, extract func([]byte) ([][]float32, error)) (*Remote, error) {
	base, err := url.Parse(opts.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a server, such as http://127.0.0.1:11434", opts.BaseURL)
	}
	if base.User != nil {
		return nil, errors.New("the address contains a password: use api_key")
	}
	if opts.Client == nil {
		opts.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}}
	}
	if opts.Key == nil {
		opts.Key = func() (string, error) { return "", nil }
	}
	// Neither the key nor a text may follow a redirect.
	client := *opts.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	opts.Client = &client
	return &Remote{
		opts: opts, kind: kind, name: kind + ":" + base.Host + ":" + opts.Model, path: strings.TrimSuffix(opts.BaseURL, "/") + path, extract: extract,
	}, nil
}

// Name implements [Embedder].
func (r *Remote) Name() string { return r.name }

// Label implements [Embedder].
func (r *Remote) Label() string { return r.kind + ":" + r.opts.Model }

// Embed implements [Embedder]. It truncates texts above maxText bytes.
func (r *Remote) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	var all [][]float32
	for len(texts) > 0 {
		n := min(len(texts), Batch)
		vectors, err := r.embed(ctx, texts[:n])
		if err != nil {
			return nil, err
		}
		all = append(all, vectors...)
		texts = texts[n:]
	}
	return all, nil
}

// embed requests one batch, and retries if the server is busy or fails.
func (r *Remote) embed(ctx context.Context, texts []string) ([][]float32, error) {
	input := make([]string, len(texts))
	for i, text := range texts {
		input[i] = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	}
	body, err := json.Marshal(map[string]any{"model": r.opts.Model, "input": input})
	if err != nil {
		return nil, err
	}
	key, err := r.opts.Key()
	if err != nil {
		return nil, err
	}
	pause := cmp.Or(r.opts.Pause, 200*time.Millisecond)
	for attempt := 1; ; attempt++ {
		vectors, after, err := r.ask(ctx, key, body, len(texts))
		if err == nil {
			return vectors, nil
		}
		var wrong *answerError
		if attempt == attempts || ctx.Err() != nil || errors.As(err, &wrong) {
			return nil, err
		}
		wait := min(max(pause, after), longestPause)
		pause *= 2
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// answerError means that the server responded, and that a retry would not help.
type answerError struct {
	text    string
	refused bool
}

func (e *answerError) Error() string { return e.text }

// Is implements what [errors.Is] asks for.
func (e *answerError) Is(target error) bool { return target == ErrRefused && e.refused }

// ask makes one request. after is the wait that the server asks for before the next
// one.
func (r *Remote) ask(ctx context.Context, key string, body []byte, want int) (_ [][]float32, after time.Duration, _ error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := r.opts.Client.Do(request)
	if err != nil {
		return nil, 0, reached(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, 0, reached(err)
	case response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500:
		after, err := time.ParseDuration(response.Header.Get("Retry-After") + "s")
		if err != nil || after < 0 {
			after = 0
		}
		return nil, after, fmt.Errorf("the server responded with %s", status(response))
	case response.StatusCode != http.StatusOK:
		return nil, 0, &answerError{fmt.Sprintf("the server responded with %s", status(response)), refusals[response.StatusCode]}
	case len(data) > maxAnswer:
		return nil, 0, &answerError{text: fmt.Sprintf("the response has more than %d bytes", maxAnswer)}
	}
	vectors, err := r.extract(data)
	if err != nil {
		return nil, 0, &answerError{text: "the response is not a list of vectors: the server has another API, or the response is damaged"}
	}
	if len(vectors) != want {
		return nil, 0, &answerError{text: fmt.Sprintf("the response has %d vectors, expected %d", len(vectors), want)}
	}
	for _, v := range vectors {
		if err := r.check(v); err != nil {
			return nil, 0, err
		}
	}
	return vectors, 0, nil
}

// refusals are the status codes for texts that the server does not embed, for
// example because they have more tokens than its model accepts.
var refusals = map[int]bool{http.StatusBadRequest: true, http.StatusRequestEntityTooLarge: true, http.StatusUnprocessableEntity: true}

// reached returns a short reason for a missing response, without the server's
// address.
func reached(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("the server did not respond in time: %w", context.DeadlineExceeded)
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("the server cannot be reached: %w", number)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New("the server cannot be reached: its name is unknown")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return errors.New("the server cannot be reached: its certificate is not trusted")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the server cannot be reached: it closed the connection")
	}
	return errors.New("the server cannot be reached")
}

func status(r *http.Response) string {
	return fmt.Sprintf("%d %s", r.StatusCode, http.StatusText(r.StatusCode))
}

// check makes sure that a vector is usable and has the dimension of earlier ones,
// and scales it to the length 1.
func (r *Remote) check(v []float32) error {
	if len(v) == 0 || len(v) > maxDimension {
		return &answerError{text: fmt.Sprintf("a vector has %d dimensions, expected 1 to %d", len(v), maxDimension)}
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return &answerError{text: "a vector is zero or contains invalid numbers"}
	}
	normalize(v)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dimension == 0 {
		r.dimension = len(v)
	}
	if len(v) != r.dimension {
		return &answerError{text: fmt.Sprintf("a vector has %d dimensions, the first one had %d: if the model was replaced, restart the plugin", len(v), r.dimension)}
	}
	return nil
}
