// Package certtest issues certificates for tests, each by an authority of the test.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth/certificate"
)

// Authority issues certificates.
type Authority struct {
	// Pool trusts it, and PEM is its certificate.
	Pool *x509.CertPool
	PEM  string

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Names are those of a certificate unless others are given: those of this machine.
func Names() []string { return []string{"localhost", "127.0.0.1"} }

// New returns an authority of its own.
func New(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{key: newKey(tb), Pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-100 * 24 * time.Hour), NotAfter: time.Now().Add(1000 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	a.Pool.AddCert(a.cert)
	a.PEM = block("CERTIFICATE", der)
	return a
}

// Issue returns a certificate and its key, both PEM, which is valid for the names from 90 days ago
// until an end. No names are those of this machine.
func (a *Authority) Issue(tb testing.TB, until time.Time, names ...string) (cert, key string) {
	tb.Helper()
	if len(names) == 0 {
		names = Names()
	}
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: "test"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: time.Now().Add(-90 * 24 * time.Hour), NotAfter: until,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	own := newKey(tb)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &own.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		tb.Fatal(err)
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", text)
}

// Write writes a certificate of [Authority.Issue] to cert.pem and key.pem of a directory.
func (a *Authority) Write(tb testing.TB, dir string, until time.Time, names ...string) certificate.Files {
	tb.Helper()
	files := certificate.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	cert, key := a.Issue(tb, until, names...)
	for path, text := range map[string]string{files.Cert: cert, files.Key: key} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return files
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func serial(tb testing.TB) *big.Int {
	tb.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
