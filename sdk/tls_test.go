package sdk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// selfSigned makes a certificate as a host does for one start of a plugin.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestOnlyTheHostMayConnect lets several clients try the plugin's socket.
func TestOnlyTheHostMayConnect(t *testing.T) {
	host, stranger := selfSigned(t), selfSigned(t)
	id, err := newIdentity(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: host.Certificate[0]})))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		client []tls.Certificate
		want   bool
	}{
		{"the host", []tls.Certificate{host}, true},
		{"nobody", nil, false},
		{"a stranger", []tls.Certificate{stranger}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			theirs, ours := net.Pipe()
			defer theirs.Close()
			defer ours.Close()
			served := make(chan error, 1)
			go func() { served <- tls.Server(ours, id.config).HandshakeContext(t.Context()) }() // ends with the handshake
			roots := x509.NewCertPool()
			certificate, err := x509.ParseCertificate(id.certificate())
			if err != nil {
				t.Fatal(err)
			}
			roots.AddCert(certificate)
			client := tls.Client(theirs, &tls.Config{Certificates: tt.client, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13})
			go func() { // ends when the test closes the pipe
				if client.HandshakeContext(t.Context()) == nil {
					_, _ = client.Read(make([]byte, 1)) // takes the server's alert
				}
			}()
			if err := <-served; (err == nil) != tt.want {
				t.Errorf("the handshake ended with %v, want success %v", err, tt.want)
			}
		})
	}
}
