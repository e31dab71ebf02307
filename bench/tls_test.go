package bench

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkTLS makes the same calls over TLS and over plain HTTP, each to a host with its plugin
// process, with warm connections.
func BenchmarkTLS(b *testing.B) {
	c := call{tool: "hello", args: map[string]any{"name": "Ada", "greeting": "Hello"}}
	for _, version := range []int{1, 2} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("http%d/callers=%d", version, callers), func(b *testing.B) {
				secure := startTLS(b, version, c)
				plain := startHTTP(b, toolhost(writeConfig(b, pluginBlock("hello", "")), "serve", "--json"), "/mcp", "2026-07-28", c)
				for b.Loop() {
					secure.round(b, 256, callers)
					plain.round(b, 256, callers)
				}
				names := [2]string{"tls", "plain"}
				report(b, "latency", "µs/call", names, median(secure.took), median(plain.took))
				report(b, "cpu", "cpu-µs/call", names, median(secure.cpu), median(plain.cpu))
			})
		}
	}
}

// startTLS runs a host that serves TLS and connects to it with a version of HTTP.
func startTLS(b *testing.B, version int, c call) *peer {
	b.Helper()
	config := writeConfig(b, pluginBlock("hello", ""))
	trust := writeCertificate(b, filepath.Dir(config))
	text, err := os.ReadFile(config)
	if err != nil {
		b.Fatal(err)
	}
	block := "server {\n  listen = \"127.0.0.1:0\"\n  tls {\n    cert = \"cert.pem\"\n    key = \"key.pem\"\n  }\n}\n"
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), "server { listen = \"127.0.0.1:0\" }\n", block, 1)), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := toolhost(config, "serve", "--json")
	said, stop := serve(b, cmd)
	if !strings.HasPrefix(said.URL, "https://") {
		b.Fatalf("the host serves %s, want TLS", said.URL)
	}
	transport := newBearer(b, said.Token)
	transport.next.TLSClientConfig, transport.next.ForceAttemptHTTP2 = &tls.Config{RootCAs: trust}, version == 2
	return connect(b, cmd, &mcp.StreamableClientTransport{Endpoint: said.URL + "/mcp", HTTPClient: &http.Client{Transport: transport}}, "2026-07-28", c, stop)
}

// writeCertificate writes a certificate for 127.0.0.1 to cert.pem and key.pem of a directory, and
// returns what trusts it.
func writeCertificate(b *testing.B, dir string) *x509.CertPool {
	b.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		b.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: server.Certificate().Raw},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	trust := x509.NewCertPool()
	trust.AddCert(server.Certificate())
	return trust
}
