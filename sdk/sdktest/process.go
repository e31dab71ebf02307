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
	"slices"
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

// stopTimeout is the time to end after standard input was closed.
const stopTimeout = 3 * time.Second

// pipeGrace is how long the pipes of an ended process are read.
const pipeGrace = time.Second

// endGrace is how long a process may take to end once its connection has ended.
const endGrace = 2*time.Second + pipeGrace

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
	run := &process{limits: p.options.Limits, log: &logBuffer{}, ended: make(chan struct{})}
	link := &dispenser{}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: toolpluginv1.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{
			toolpluginv1.Version: {toolpluginv1.ServiceName: link},
		},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, ServerName: "localhost",
		},
		StartTimeout:     startTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets},
		Logger:           hclog.NewNullLogger(),
		GRPCDialOptions:  dialOptions(),
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, socketDir string) (runner.Runner, error) {
			run.socketDir = socketDir
			run.cmd = exec.Command(path)
			run.cmd.Env = slices.Concat(spec.Env, []string{"PLUGIN_CLIENT_CERT=" + certificatePEM}, run.limits.environ(), p.options.Env)
			run.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			return run, nil
		},
	})
	p.process = run
	p.stop = func() {
		run.stop()
		client.Kill()
		_ = os.RemoveAll(sockets) // already empty
	}
	err = run.dial(ctx, client)
	if err != nil {
		p.Close()
		return run.withLastWords(err)
	}
	p.conn, p.client = link.conn, toolpluginv1.NewPluginServiceClient(link.conn)
	return context.Cause(ctx)
}

// dial starts the process and connects to it.
func (r *process) dial(ctx context.Context, client *plugin.Client) error {
	if _, err := client.Start(); err != nil {
		return err
	}
	protocol, err := client.Client()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if _, err := protocol.Dispense(toolpluginv1.ServiceName); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if r.talksToStrangers(ctx, strings.Split(r.handshake, "|")[3]) {
		return errors.New("it answers a client without a certificate: require the one in $PLUGIN_CLIENT_CERT")
	}
	return nil
}

// dispenser is the client side of a plugin for go-plugin. It keeps the connection.
type dispenser struct {
	plugin.NetRPCUnsupportedPlugin
	conn *grpc.ClientConn
}

// GRPCServer implements [plugin.GRPCPlugin]. A test is never the server.
func (*dispenser) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("sdktest does not serve")
}

// GRPCClient implements [plugin.GRPCPlugin].
func (d *dispenser) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	d.conn = conn
	return conn, nil
}

// process is the process of a plugin. The runner of go-plugin would give it the standard
// input of the test, and explain little about a program that is not a plugin.
type process struct {
	cmd            *exec.Cmd
	limits         Limits
	stdin          *os.File
	stdout, stderr *os.File
	socketDir      string // where its socket must be
	handshake      string // set once Start has succeeded
	log            *logBuffer
	readers        sync.WaitGroup
	ended          chan struct{} // closed when the process has been reaped
	waitErr        error         // set before ended is closed
}

var _ runner.Runner = (*process)(nil)

// Start implements [runner.Runner]. It waits for the handshake.
func (r *process) Start(ctx context.Context) error {
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
	lines := make(chan string)
	r.readers.Go(func() { r.readStdout(lines) })             // ends with the process
	r.readers.Go(func() { _, _ = io.Copy(r.log, r.stderr) }) // ends with the process
	go r.reap()                                              // ends with the process; stop waits for it
	if err := r.limits.set(r.cmd.Process.Pid); err != nil {
		go discard(lines)
		return fmt.Errorf("limit the process: %w", err)
	}
	line, err := r.awaitHandshake(ctx, lines)
	go discard(lines)
	if err != nil {
		return err
	}
	r.handshake = line
	return checkHandshake(line, r.socketDir)
}

// discard reads lines until readStdout ends.
func discard(lines <-chan string) {
	for range lines {
	}
}

// reap waits for the process, and then at most pipeGrace for its pipes, which a child may
// keep open.
func (r *process) reap() {
	r.waitErr = r.cmd.Wait()
	read := make(chan struct{})
	go func() { // ends with the pipes
		r.readers.Wait()
		close(read)
	}()
	timer := time.NewTimer(pipeGrace)
	defer timer.Stop()
	select {
	case <-read:
	case <-timer.C:
	}
	_ = r.stdout.Close() // it was only read
	_ = r.stderr.Close()
	close(r.ended)
}

// stop closes standard input, waits, and kills what still runs.
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

// hangUp acts like the kernel when the host dies.
func (r *process) hangUp() { _ = r.stdin.Close() }

// kill ends the process and its children, which share its group.
func (r *process) kill() {
	if pid := r.cmd.Process.Pid; pid > 1 {
		// It may be gone already.
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// withLastWords adds lastWords to an error. A list of mistakes in the handshake stays as
// it is.
func (r *process) withLastWords(err error) error {
	if _, isList := err.(interface{ Unwrap() []error }); isList {
		return err
	}
	return fmt.Errorf("%w%s", err, r.lastWords())
}

// lastWords describes how the process ended, and its last output.
func (r *process) lastWords() string {
	words := ""
	select {
	case <-r.ended:
		words = " (the process ended: " + r.cmd.ProcessState.String() + ")"
	default:
	}
	if text := excerpt(r.log.String()); text != "" {
		words += "; its standard error: " + text
	}
	return words
}

// excerpt returns the most useful lines of a log: those of a crash, or else the last.
func excerpt(log string) string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(log), "\n")
	from := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "Traceback ")
	})
	if from < 0 || strings.HasPrefix(lines[from], "Traceback ") {
		// An interpreter names the error last.
		from = max(0, len(lines)-most)
	}
	lines = slices.DeleteFunc(slices.Clone(lines[from:]), func(line string) bool { return strings.TrimSpace(line) == "" })
	return strings.Join(lines[:min(most, len(lines))], " / ")
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

// Stdout implements [runner.Runner]: go-plugin needs the handshake only.
func (r *process) Stdout() io.ReadCloser {
	return io.NopCloser(strings.NewReader(r.handshake + "\n"))
}

// Stderr implements [runner.Runner]: the process's is read by Start.
func (r *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

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

// logBuffer keeps the end of the data written to it.
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
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("make a certificate: %w", err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(encoded), nil
}
