package sdk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// identity is the TLS configuration of the plugin: a key for the lifetime of the
// process, and the certificate of the one client that may connect.
type identity struct {
	config *tls.Config
}

// newIdentity makes a P-256 key, which takes 20 microseconds; the P-521 key of
// go-plugin takes 20 milliseconds. clientCert is the host's certificate in PEM. If
// it is empty, there is no TLS and the identity is nil.
func newIdentity(clientCert string) (*identity, error) {
	if clientCert == "" {
		return nil, nil
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(clientCert)) {
		return nil, errors.New("PLUGIN_CLIENT_CERT holds no certificate")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"},
		// The name that go-plugin expects.
		DNSNames:     []string{"localhost"},
		SerialNumber: big.NewInt(1),
		// The certificate ends with the process. A plugin may run for years, and
		// the clock may be set back.
		NotBefore:             time.Now().Add(-24 * time.Hour),
		NotAfter:              time.Now().AddDate(100, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &identity{config: &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
		MinVersion:   tls.VersionTLS13,
	}}, nil
}

// certificate returns the certificate in DER for the handshake; nil without TLS.
func (i *identity) certificate() []byte {
	if i == nil {
		return nil
	}
	return i.config.Certificates[0].Certificate[0]
}
