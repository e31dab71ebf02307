package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"sync"
	"time"
)

const (
	// certificateLife is longer than any process lives. The keys never leave memory.
	certificateLife = 365 * 24 * time.Hour
	// maxCertificates bounds the certificates that an authority keeps.
	maxCertificates = 256
)

// Authority signs the certificates of hosts whose requests get credentials, for one process, which
// trusts it. Nothing else does, and its key never leaves memory.
type Authority struct {
	certificate *x509.Certificate
	der         []byte
	key         *ecdsa.PrivateKey

	mu    sync.Mutex // guards hosts
	hosts map[string]*tls.Certificate
}

// NewAuthority returns a new authority.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the proxy: %w", err)
	}
	template := newTemplate("toolhost proxy")
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	template.MaxPathLenZero = true
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the proxy: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	return &Authority{certificate: certificate, der: der, key: key, hosts: make(map[string]*tls.Certificate)}, err
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.der})
}

// certificateFor returns a certificate for a host.
func (a *Authority) certificateFor(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.hosts[host]; known != nil {
		return known, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := newTemplate(host)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	made := &tls.Certificate{Certificate: [][]byte{der, a.der}, PrivateKey: key}
	if len(a.hosts) >= maxCertificates {
		clear(a.hosts)
	}
	a.hosts[host] = made
	return made, nil
}

func newTemplate(name string) *x509.Certificate {
	var serial [16]byte
	_, _ = rand.Read(serial[:]) // never fails
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), BasicConstraintsValid: true,
	}
}
