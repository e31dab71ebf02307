package process

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
	"os/exec"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/toolhost/toolhost/internal/excerpt"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// newClient returns the go-plugin client that starts the process. The process
// itself does what go-plugin's client would do less carefully: it reads the
// handshake and the logs, and makes the keys.
func (p *Process) newClient(config *tls.Config) *plugin.Client {
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  toolpluginv1.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{toolpluginv1.Version: {toolpluginv1.ServiceName: wirePlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		TLSConfig:        config, // go-plugin adds the plugin's certificate to it
		StartTimeout:     p.opts.StartTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.opts.RunDir},
		GRPCDialOptions:  dialOptions(),
		// go-plugin in the plugin sends printed output over gRPC.
		SyncStdout: lineWriter(p.log.stdout),
		SyncStderr: lineWriter(p.log.stdout),
		// The errors of this package say more than go-plugin's log.
		Logger: hclog.NewNullLogger(),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
			p.socketDir = socketDir
			p.opts.Profile.Own = append(p.opts.Profile.Own, socketDir)
			p.opts.Profile.Env = append(p.opts.Profile.Env, cmd.Env...)
			return &pluginRunner{p}, nil
		},
	})
}

const (
	// Static windows: with gRPC's estimate a 4 MB result takes twice as long.
	streamWindow     = 8 << 20
	connectionWindow = 16 << 20
)

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(newCodec()),
			grpc.MaxCallRecvMsgSize(toolpluginv1.MaxMessageBytes),
			grpc.MaxCallSendMsgSize(toolpluginv1.MaxMessageBytes),
		),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connectionWindow),
	}
}

// lineWriter is an [io.Writer] that passes lines to a function.
type lineWriter func(line []byte)

// Write treats p as whole lines, although lines may be cut anywhere.
func (f lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		f(trimEnd([]byte(excerpt.Head(line, maxLogLine))))
	}
	return len(p), nil
}

// certLife is longer than any process lives. The key never leaves memory, so an
// expiry would only end plugins that run for long.
const certLife = 10 * 365 * 24 * time.Hour

// clientTLS returns the host's side of mutual TLS with one process, with a key
// that is used for nothing else. go-plugin adds the plugin's certificate from the
// handshake, so the host talks to this process only. (go-plugin's AutoMTLS makes
// P-521 keys, which take 20 ms longer.)
func clientTLS(now time.Time) (config *tls.Config, certPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"toolhost"}},
		DNSNames:              []string{"localhost"},
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(certLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // the plugin's only root of trust is this certificate
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	config = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS12, // all gRPC libraries of other languages support it
		ServerName:   "localhost",
	}
	return config, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
