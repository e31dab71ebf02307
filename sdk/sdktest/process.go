package sdktest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// stopTimeout is what a plugin has to end after its stdin was closed.
const stopTimeout = 3 * time.Second

// startProcess starts the binary at path as p, with go-plugin as a host does.
func startProcess(ctx context.Context, p *Plugin, path string) error {
	certificate, certificatePEM, err := newCertificate()
	if err != nil {
		return err
	}
	// go-plugin leaves its directory behind if the process cannot be started.
	sockets, err := os.MkdirTemp("", "sdktest")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	run := &process{log: &logBuffer{}, ended: make(chan struct{})}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: toolpluginv1.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{
			toolpluginv1.Version: {toolpluginv1.ServiceName: &dispenser{}},
		},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13, ServerName: "localhost",
		},
		StartTimeout:     startTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets},
		Logger:           hclog.NewNullLogger(),
		Stderr:           run.log,
		GRPCDialOptions:  dialOptions(),
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
			run.cmd = exec.Command(path)
			run.cmd.Env = append(append(spec.Env, "PLUGIN_CLIENT_CERT="+certificatePEM), p.options.Env...)
			run.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			return run, nil
		},
	})
	p.process = run
	p.stop = func() {
		run.stop()
		client.Kill()
		_ = os.RemoveAll(sockets) // empty by now
	}
	fail := func(err error) error {
		p.Close()
		return fmt.Errorf("%w%s", err, run.lastWords())
	}
	protocol, err := client.Client()
	if err != nil {
		return fail(err)
	}
	raw, err := protocol.Dispense(toolpluginv1.ServiceName)
	if err != nil {
		return fail(fmt.Errorf("dispense: %w", err))
	}
	service, ok := raw.(toolpluginv1.PluginServiceClient)
	if !ok {
		return fail(fmt.Errorf("dispensed %T", raw))
	}
	p.client = service
	return context.Cause(ctx)
}

// dispenser is the client's half of a plugin, as go-plugin wants it.
type dispenser struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer implements [plugin.GRPCPlugin]. A test is never the server.
func (*dispenser) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("sdktest does not serve")
}

// GRPCClient implements [plugin.GRPCPlugin].
func (*dispenser) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return toolpluginv1.NewPluginServiceClient(conn), nil
}

// process is a plugin's process. It is a runner of its own because go-plugin's
// gives the plugin the stdin of the test.
type process struct {
	cmd            *exec.Cmd
	stdin          *os.File
	stdout, stderr *os.File
	log            *logBuffer
	ended          chan struct{} // closed when the process has been reaped
	waitErr        error         // set before ended is closed
}

var _ runner.Runner = (*process)(nil)

// Start implements [runner.Runner].
func (r *process) Start(context.Context) error {
	var theirs [3]*os.File
	var ours [3]*os.File
	for n := range theirs {
		read, write, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make pipes: %w", err)
		}
		theirs[n], ours[n] = write, read
	}
	theirs[0], ours[0] = ours[0], theirs[0]
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	r.stdin, r.stdout, r.stderr = ours[0], ours[1], ours[2]
	err := r.cmd.Start()
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		for _, f := range ours {
			_ = f.Close()
		}
		r.cmd.Process = nil
		return fmt.Errorf("start: %w", err)
	}
	go func() { // ends with the process; stop waits for it
		r.waitErr = r.cmd.Wait()
		close(r.ended)
	}()
	return nil
}

// stop closes the plugin's stdin, waits, and kills what is left.
func (r *process) stop() {
	if r.cmd == nil || r.cmd.Process == nil {
		return
	}
	r.hangUp()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
	}
	r.kill()
	<-r.ended
}

// hangUp does what the kernel does when the host dies.
func (r *process) hangUp() { _ = r.stdin.Close() }

// kill ends the process and its children, which share its group.
func (r *process) kill() {
	if pid := r.cmd.Process.Pid; pid > 1 {
		// It may be gone already.
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// lastWords tells how the process ended and what it said last.
func (r *process) lastWords() string {
	words := ""
	select {
	case <-r.ended:
		words = " (the process ended: " + r.cmd.ProcessState.String() + ")"
	default:
	}
	if text := strings.TrimSpace(r.log.String()); text != "" {
		lines := strings.Split(text, "\n")
		words += "; its standard error ends: " + strings.Join(lines[max(0, len(lines)-5):], " / ")
	}
	return words
}

// Kill implements [runner.Runner].
func (r *process) Kill(context.Context) error {
	if r.cmd != nil && r.cmd.Process != nil {
		r.kill()
	}
	return nil
}

// Wait implements [runner.Runner].
func (r *process) Wait(context.Context) error {
	<-r.ended
	return r.waitErr
}

// Stdout implements [runner.Runner].
func (r *process) Stdout() io.ReadCloser { return r.stdout }

// Stderr implements [runner.Runner].
func (r *process) Stderr() io.ReadCloser { return r.stderr }

// Name implements [runner.Runner].
func (r *process) Name() string { return r.cmd.Path }

// ID implements [runner.Runner]: the process id, or "" before the start.
func (r *process) ID() string {
	if r.cmd == nil || r.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(r.cmd.Process.Pid)
}

// Diagnose implements [runner.Runner].
func (r *process) Diagnose(context.Context) string { return "" }

// PluginToHost implements [runner.Runner]: both see the same files.
func (r *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements [runner.Runner].
func (r *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// logBuffer keeps the end of what is written to it.
type logBuffer struct {
	mu   sync.Mutex // guards data
	data []byte
}

const maxLog = 64 << 10

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p...)
	if extra := len(b.data) - maxLog; extra > 0 {
		b.data = b.data[extra:]
	}
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.data)
}

// newCertificate makes the host's certificate for one plugin.
func newCertificate() (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, SerialNumber: big.NewInt(1),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("make a certificate: %w", err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(encoded), nil
}
