// Package certificate reads the certificate with which the host serves TLS, and reads it
// again when its files change. A certificate that cannot be used never replaces one that can.
// No error contains a part of a file.
package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxFile bounds a file, in bytes.
	maxFile = 256 << 10
	// Soon is how long before its end a certificate is reported.
	Soon = 14 * 24 * time.Hour
)

// Files name a certificate with its chain, and its private key. Both are PEM. The zero value
// means that there is no certificate.
type Files struct{ Cert, Key string }

// Certificate is a certificate that has the key of its files.
type Certificate struct {
	pair tls.Certificate
	leaf *x509.Certificate
}

// Read reads a certificate and its key. It does not check whether the certificate is still
// valid, or trusted; see [Certificate.Problem]. The error names the file that is wrong.
func Read(files Files) (*Certificate, error) {
	t, err := read(files)
	if err != nil {
		return nil, err
	}
	return t.parse(files)
}

// texts are the contents of the files.
type texts struct{ cert, key string }

func read(files Files) (t texts, err error) {
	if t.cert, err = readFile(files.Cert); err != nil {
		return texts{}, fmt.Errorf("read the certificate: %w", err)
	}
	if t.key, err = readFile(files.Key); err != nil {
		return texts{}, fmt.Errorf("read the key: %w", err)
	}
	return t, nil
}

// readFile returns the text of a regular file.
func readFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO must not block
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", fmt.Errorf("%s is a directory, expected a file in PEM format", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(text) == 0:
		return "", fmt.Errorf("%s is empty, expected PEM", path)
	case len(text) > maxFile:
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return string(text), nil
}

func (t texts) parse(files Files) (*Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(t.cert), []byte(t.key))
	if err != nil {
		return nil, fmt.Errorf("the certificate %s and the key %s cannot be used together: %w", files.Cert, files.Key, err)
	}
	return &Certificate{pair: pair, leaf: pair.Leaf}, nil
}

// Covers reports whether the certificate is for a DNS name or an IP address.
func (c *Certificate) Covers(name string) bool { return c.leaf.VerifyHostname(name) == nil }

// Name returns the first name of the certificate that a client can use in an address: a DNS
// name without a wildcard or an IP address. It returns "" if there is none.
func (c *Certificate) Name() string {
	for _, name := range c.leaf.DNSNames {
		if !strings.Contains(name, "*") {
			return name
		}
	}
	if len(c.leaf.IPAddresses) > 0 {
		return c.leaf.IPAddresses[0].String()
	}
	return ""
}

// Expires returns when the certificate stops being valid.
func (c *Certificate) Expires() time.Time { return c.leaf.NotAfter }

// Problem says that the certificate has expired, that it expires within [Soon], or that it is
// not valid yet. It returns "" otherwise.
func (c *Certificate) Problem(now time.Time) string {
	begins, ends := c.leaf.NotBefore, c.leaf.NotAfter
	left := ends.Sub(now)
	switch days := int(left.Hours() / 24); {
	case left <= 0:
		return fmt.Sprintf("the TLS certificate expired at %s: clients refuse it; renew it", ends.UTC().Format(time.RFC3339))
	case now.Before(begins):
		return fmt.Sprintf("the TLS certificate is not valid before %s: clients refuse it; check the clock of this machine", begins.UTC().Format(time.RFC3339))
	case left <= Soon && days == 0:
		return fmt.Sprintf("the TLS certificate expires at %s, within a day; renew it", ends.UTC().Format(time.RFC3339))
	case left <= Soon:
		return fmt.Sprintf("the TLS certificate expires at %s, in %d days or less; renew it", ends.UTC().Format(time.RFC3339), days+1)
	}
	return ""
}

// OthersCanRead reports whether accounts other than the owner and root can read a file. The
// group of a file counts as others. A file that cannot be examined is not reported.
func OthersCanRead(path string) (mode fs.FileMode, yes bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&0o077 != 0
}
