package certificate

import (
	"crypto/tls"
	"sync"
	"time"
)

// Unusable is the problem of a [Reloader] that keeps an earlier certificate.
const Unusable = "the files of the TLS certificate cannot be used, so the certificate before stays in use; the log of the host says why"

// Reloader holds the certificate in use. It is safe for concurrent use.
type Reloader struct {
	now func() time.Time

	mu      sync.Mutex // guards everything below
	files   Files
	texts   texts // of current
	current *Certificate
	failed  string // why the files cannot be used; "" if they are in use
}

// NewReloader reads a certificate. now is the clock; nil means [time.Now].
func NewReloader(files Files, now func() time.Time) (*Reloader, error) {
	if now == nil {
		now = time.Now
	}
	t, err := read(files)
	if err != nil {
		return nil, err
	}
	first, err := t.parse(files)
	if err != nil {
		return nil, err
	}
	return &Reloader{now: now, files: files, texts: t, current: first}, nil
}

// Use takes other files, and reads them as Refresh does.
func (r *Reloader) Use(files Files) (renewed bool, err error) {
	r.mu.Lock()
	r.files = files
	r.mu.Unlock()
	return r.Refresh()
}

// Refresh reads the files again. It reports whether a new certificate is in use. An error says
// that the files cannot be used, so that the certificate in use stays; the same error is
// returned once.
func (r *Reloader) Refresh() (renewed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, err := read(r.files)
	if err != nil {
		return false, r.fail(err)
	}
	if t == r.texts {
		r.failed = ""
		return false, nil
	}
	next, err := t.parse(r.files)
	if err != nil {
		return false, r.fail(err)
	}
	r.texts, r.current, r.failed = t, next, ""
	return true, nil
}

// fail records an error and returns it if it is a new one.
func (r *Reloader) fail(err error) error {
	if r.failed == err.Error() {
		return nil
	}
	r.failed = err.Error()
	return err
}

// Certificate returns the certificate in use.
func (r *Reloader) Certificate() *Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// Problems say that clients refuse the certificate, or will soon, and that the files cannot be
// used. They name no paths.
func (r *Reloader) Problems() (problems []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if problem := r.current.Problem(r.now()); problem != "" {
		problems = append(problems, problem)
	}
	if r.failed != "" {
		problems = append(problems, Unusable)
	}
	return problems
}

// TLS returns the configuration of a server with the certificate in use: TLS 1.2 or later.
func (r *Reloader) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &r.Certificate().pair, nil },
	}
}
