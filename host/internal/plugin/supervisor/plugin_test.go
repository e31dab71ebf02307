package supervisor

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// testPlugin is this test binary when a supervisor starts it. It speaks the contract without the
// sdk and without go-plugin, so that it can break each rule. The name of its file sets its
// behavior before the first call, and the tool's name its behavior in a call.
type testPlugin struct {
	toolpluginv1.UnimplementedPluginServiceServer
	mode string

	stateDir string // set by Configure
	calls    sync.WaitGroup
	attached atomic.Bool // Connect was accepted

	mu      sync.Mutex // guards the rest
	inside  int        // calls that wait in the tool "block"
	waiters []chan struct{}
	ends    sync.Map // by the id of the call, a channel that is closed at its end
	host    requester
}

var testTools = []string{
	"echo", "block", "exit", "panic", "allocate", "open_files", "large_file", "large", "large_chunks", "two_results", "no_result",
	"many_parts", "long_metadata", "long_structured", "ignore", "text", "wait_file", "attached", "bad_code", "bad_text", "bad_structured", "bad_kind", "status", "stop", "fork", "flood", "environment", "limits", "tool_error", "log", "pid", "dirs", "ask", "change",
}

// pidFileEnv names the file to which the plugin writes its process ids.
const pidFileEnv = "SUPERVISOR_TEST_PIDS"

// tellPIDs writes process ids for the test to read.
func tellPIDs(pids ...any) {
	if path := os.Getenv(pidFileEnv); path != "" {
		must(os.WriteFile(path, fmt.Appendln(nil, pids...), 0))
	}
}

func isTestPlugin() bool {
	h := toolpluginv1.Handshake()
	return os.Getenv(h.MagicCookieKey) == h.MagicCookieValue
}

func runTestPlugin() {
	p := &testPlugin{mode: filepath.Base(os.Args[0])}
	p.beforeHandshake()
	line, serve := p.listen()
	switch p.mode {
	case "oldversion":
		line = strings.Replace(line, "1|1|", "1|7|", 1)
	case "oldcore":
		line = strings.Replace(line, "1|1|", "9|1|", 1)
	case "notls":
		line = line[:strings.LastIndexByte(line, '|')+1]
	case "badcert":
		line = line[:strings.LastIndexByte(line, '|')+1] + "!!!!"
	case "netrpc":
		line = strings.Replace(line, "|grpc|", "|netrpc|", 1)
	case "tcp":
		line = strings.Replace(line, "|unix|", "|tcp|", 1)
	case "elsewhere":
		line = strings.Replace(line, os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "/run/other", 1)
	}
	fmt.Fprintln(os.Stdout, line)
	if p.mode == "noaccept" {
		hang()
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	serve()
}

func (p *testPlugin) beforeHandshake() {
	switch p.mode {
	case "crashstart":
		fmt.Fprintln(os.Stderr, "no settings file")
		os.Exit(3)
	case "silent":
		tellPIDs(os.Getpid())
		hang()
	case "noisy":
		fmt.Fprintln(os.Stdout, "Loading...\x1b[31m")
	case "talker":
		fmt.Fprintln(os.Stdout, "Usage: talker [flags]")
		hang()
	case "usage":
		fmt.Fprintln(os.Stdout, "Usage: usage [flags]")
		os.Exit(2)
	case "quiet":
		os.Exit(0)
	case "closed":
		os.Stdout.Close()
		hang()
	case "longline":
		for {
			fmt.Fprint(os.Stdout, strings.Repeat("x", 1<<16))
		}
	case "flooder":
		for {
			fmt.Fprintln(os.Stdout, "flood")
			fmt.Fprintln(os.Stderr, "flood")
		}
	}
}

// listen returns the handshake and a function that serves forever.
func (p *testPlugin) listen() (line string, serve func()) {
	listener, err := net.Listen("unix", filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s"))
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(err)
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(os.Getenv("PLUGIN_CLIENT_CERT"))) {
		must(errors.New("no client certificate"))
	}
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS13,
		})),
		grpc.MaxSendMsgSize(1<<30),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			if method, _ := grpc.MethodFromServerStream(stream); method == "/plugin.GRPCController/Shutdown" && p.mode != "stubborn" {
				os.Exit(0)
			}
			return status.Error(codes.Unimplemented, "no such service")
		}),
	)
	toolpluginv1.RegisterPluginServiceServer(server, p)
	well := health.NewServer()
	well.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, well)
	line = fmt.Sprintf("1|1|unix|%s|grpc|%s", listener.Addr(), base64.RawStdEncoding.EncodeToString(der))
	return line, func() { must(server.Serve(listener)) }
}

func (p *testPlugin) Describe(context.Context, *toolpluginv1.DescribeRequest) (*toolpluginv1.DescribeResponse, error) {
	p.misbehave("describe")
	d := &toolpluginv1.DescribeResponse{Name: p.mode, Version: "1.2.3", Sdk: "none", SettingsSchemaJson: []byte(`{"type":"object"}`)}
	switch p.mode {
	case "liar":
		d.Name = "fs"
	case "erring":
		return nil, status.Error(codes.Internal, "no describing today")
	case "connected", "disconnecting", "slowconnect", "asking", "asking2", "deaf":
		d.Capabilities = []string{"connect", "drain"}
	case "draining":
		d.Capabilities = []string{"drain"}
	case "telling":
		d.Capabilities = []string{"drain", "drain_call"}
	case "sessions":
		d.Capabilities = []string{"drain", "end_session"}
	case "manyempty":
		d.ProtoReflect().SetUnknown(empty(6))
	case "manytools":
		d.Tools = make([]*toolpluginv1.Tool, 1000+1)
	}
	return d, nil
}

func (p *testPlugin) Configure(_ context.Context, r *toolpluginv1.ConfigureRequest) (*toolpluginv1.ConfigureResponse, error) {
	p.misbehave("configure")
	res := new(toolpluginv1.ConfigureResponse)
	if bytes.Contains(r.GetSettingsJson(), []byte("wrong")) {
		res.Diagnostics = []*toolpluginv1.Diagnostic{
			{Severity: toolpluginv1.Diagnostic_SEVERITY_ERROR, Summary: "it is wrong", Detail: "expected right, not " + string(r.GetSettingsJson()), Path: []string{"color"}},
			{Severity: toolpluginv1.Diagnostic_SEVERITY_WARNING, Summary: "it is old", Path: []string{"age"}},
		}
	}
	p.stateDir = r.GetStateDir()
	_, moody := os.Stat(filepath.Join(p.stateDir, "more"))
	if bytes.Contains(r.GetSettingsJson(), []byte("more")) || moody == nil {
		res.Tools = append(res.Tools, &toolpluginv1.Tool{Name: "more", Tier: toolpluginv1.Tier_TIER_READ_ONLY, InputSchemaJson: []byte(`{"type":"object"}`)})
	}
	for _, name := range testTools {
		res.Tools = append(res.Tools, &toolpluginv1.Tool{
			Name: name, Description: "does " + name, Tier: toolpluginv1.Tier_TIER_READ_ONLY, InputSchemaJson: []byte(`{"type":"object"}`),
		})
	}
	return res, nil
}

// EndSession logs the end. The session "slow" takes longer than any host waits.
func (p *testPlugin) EndSession(ctx context.Context, r *toolpluginv1.EndSessionRequest) (*toolpluginv1.EndSessionResponse, error) {
	fmt.Fprintf(os.Stderr, "%s hears of the end of %s\n", p.mode, r.GetSession())
	if r.GetSession() == "slow" {
		<-ctx.Done() // which the process can see before the host does
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &toolpluginv1.EndSessionResponse{}, nil
}

func (p *testPlugin) misbehave(phase string) {
	switch p.mode {
	case "crash" + phase:
		os.Exit(4)
	case "hang" + phase:
		tellPIDs(os.Getpid())
		hang()
	}
}

func (p *testPlugin) Connect(stream grpc.BidiStreamingServer[toolpluginv1.HostMessage, toolpluginv1.PluginMessage]) error {
	if p.mode == "disconnecting" {
		return status.Error(codes.Aborted, "no more")
	}
	switch p.mode {
	case "asking", "asking2":
		return p.host.serve(stream)
	case "deaf":
		return deafen(stream)
	case "slowconnect":
		slow := time.NewTimer(200 * time.Millisecond)
		defer slow.Stop()
		select { // a call that did not wait for this would arrive first
		case <-slow.C:
		case <-stream.Context().Done():
		}
	}
	p.attached.Store(true)
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	err := stream.Send(&toolpluginv1.PluginMessage{Id: 7, Request: &toolpluginv1.PluginMessage_Secret{Secret: &toolpluginv1.SecretRequest{Name: "key"}}})
	if err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "the host answered %d %s\n", answer.GetId(), answer.GetError().GetCode())
	<-stream.Context().Done()
	return nil
}

// empty is a list of 3 million messages without fields, under a number.
func empty(number protowire.Number) []byte {
	return bytes.Repeat(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), 0), 3_000_000)
}

func (p *testPlugin) Drain(ctx context.Context, r *toolpluginv1.DrainRequest) (*toolpluginv1.DrainResponse, error) {
	if id := r.GetCallId(); id != "" {
		if ended, ok := p.ends.Load(id); ok {
			select {
			case <-ended.(chan struct{}):
			case <-ctx.Done():
				return nil, status.FromContextError(ctx.Err()).Err()
			}
		}
		return &toolpluginv1.DrainResponse{}, nil
	}
	fmt.Fprintln(os.Stderr, "draining")
	p.calls.Wait()
	return &toolpluginv1.DrainResponse{}, nil
}

type callStream = grpc.ServerStreamingServer[toolpluginv1.CallResponse]

func (p *testPlugin) Call(r *toolpluginv1.CallRequest, stream callStream) error {
	p.calls.Add(1)
	defer p.calls.Done()
	ended := make(chan struct{})
	defer close(ended)
	p.ends.Store(r.GetContext().GetCallId(), ended)
	switch r.GetTool() {
	case "many_parts":
		result := new(toolpluginv1.Result)
		result.ProtoReflect().SetUnknown(empty(4))
		return send(stream, result)
	case "long_metadata":
		return send(stream, &toolpluginv1.Result{MetadataJson: longJSON(20 << 20)})
	case "long_structured":
		return send(stream, &toolpluginv1.Result{StructuredJson: longJSON(20 << 20)})
	case "ignore":
		must(stream.Send(chunk([]byte("inside"))))
		hang()
	case "wait_file":
		must(stream.Send(chunk([]byte("inside"))))
		for look := time.Tick(5 * time.Millisecond); ; {
			if _, err := os.Stat(string(bytes.Trim(r.GetArgumentsJson(), `"`))); err == nil {
				return text(stream, "done")
			}
			select {
			case <-look:
			case <-stream.Context().Done():
				return stream.Context().Err()
			}
		}
	case "text":
		n, err := strconv.Atoi(string(r.GetArgumentsJson()))
		must(err)
		return text(stream, strings.Repeat("x", n))
	case "ask", "change":
		return p.host.tell(r, stream)
	case "attached":
		return text(stream, fmt.Sprint(p.attached.Load()))
	case "echo":
		must(stream.Send(&toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Progress{Progress: &toolpluginv1.Progress{Progress: 1, Total: 2, Message: "half"}}}))
		must(stream.Send(chunk([]byte("chunk"))))
		return text(stream, string(r.GetArgumentsJson()))
	case "block":
		return p.block(r, stream)
	case "exit":
		os.Exit(5)
	case "panic":
		panic("secret /home/somebody " + string(r.GetArgumentsJson()))
	case "allocate":
		var hold [][]byte
		for {
			block := make([]byte, 8<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			hold = append(hold, block)
			if len(hold) > 1024 {
				panic("8 GiB and no limit")
			}
		}
	case "open_files":
		for {
			if _, err := os.Open("/dev/null"); err != nil {
				panic(err)
			}
		}
	case "large_file":
		f, err := os.CreateTemp("", "large")
		must(err)
		for {
			if _, err := f.Write(make([]byte, 1<<20)); err != nil {
				panic(err)
			}
		}
	case "large":
		return text(stream, strings.Repeat("x", 100<<20))
	case "large_chunks":
		for range 100 {
			if err := stream.Send(chunk(make([]byte, 1<<20))); err != nil {
				return err
			}
		}
		return text(stream, "done")
	case "two_results":
		must(text(stream, "one"))
		return text(stream, "two")
	case "no_result":
		return nil
	case "bad_code":
		return send(stream, &toolpluginv1.Result{Error: &toolpluginv1.Error{Code: "oops", Message: "m"}})
	case "bad_text":
		return text(stream, "\xff")
	case "bad_structured":
		return send(stream, &toolpluginv1.Result{StructuredJson: []byte("{\"a\":\"\xff\"}")})
	case "bad_kind":
		return send(stream, &toolpluginv1.Result{Content: []*toolpluginv1.Content{{Kind: 42}}})
	case "status":
		return status.Error(codes.FailedPrecondition, "/home/somebody is not mounted "+string(r.GetArgumentsJson()))
	case "unavailable":
		return status.Error(codes.Unavailable, "not today")
	case "stop":
		tellPIDs(os.Getpid())
		must(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		hang() // other threads stop a little later
	case "fork":
		return fork(stream)
	case "flood":
		for i := range 20_000 {
			fmt.Fprintln(os.Stdout, "out", i)
			fmt.Fprintln(os.Stderr, "err", i)
		}
		fmt.Fprintln(os.Stdout, strings.Repeat("y", 1<<20))
		return text(stream, "flooded")
	case "environment":
		return text(stream, strings.Join(os.Environ(), "\n"))
	case "limits":
		b, err := os.ReadFile("/proc/self/limits")
		must(err)
		return text(stream, string(b))
	case "tool_error":
		return send(stream, &toolpluginv1.Result{Error: &toolpluginv1.Error{Code: "failed", Message: "open x: too many open files"}})
	case "log":
		fmt.Fprint(os.Stderr, string(r.GetArgumentsJson()))
		return text(stream, "")
	case "append":
		path := string(r.GetArgumentsJson())
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString("changed")
			must(f.Close())
		}
		return text(stream, fmt.Sprint(err))
	case "dirs": // of its state and of the user
		must(os.WriteFile(filepath.Join(p.stateDir, "was here"), nil, 0o600))
		return text(stream, p.stateDir+" "+r.GetContext().GetUserDir())
	case "pid":
		return text(stream, fmt.Sprint(os.Getpid()))
	}
	return p.attempt(r, stream)
}

// longJSON returns a JSON object of n bytes, with an empty list for every 3 bytes.
func longJSON(n int) []byte {
	return fmt.Appendf(nil, `{"a":[%s[]]}`, strings.Repeat("[],", n/3))
}

// block waits until the number of calls in the arguments has arrived, tells each, and then waits
// for the call's end.
func (p *testPlugin) block(r *toolpluginv1.CallRequest, stream callStream) error {
	var args struct{ Calls int }
	must(json.Unmarshal(r.GetArgumentsJson(), &args))
	p.mu.Lock()
	p.inside++
	full := make(chan struct{})
	p.waiters = append(p.waiters, full)
	if p.inside == args.Calls {
		for _, w := range p.waiters {
			close(w)
		}
	}
	p.mu.Unlock()
	<-full
	must(stream.Send(chunk([]byte("inside"))))
	tellPIDs(os.Getpid())
	if p.mode == "calm" {
		return text(stream, "done")
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// fork leaves a child that has its own session and holds everything that it inherited, and
// returns its id.
func fork(stream callStream) error {
	child := exec.Command("sleep", "1000")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(child.Start())
	tellPIDs(os.Getpid(), child.Process.Pid)
	return text(stream, fmt.Sprint(child.Process.Pid))
}

func send(stream callStream, r *toolpluginv1.Result) error {
	return stream.Send(&toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Result{Result: r}})
}

func text(stream callStream, s string) error {
	return send(stream, &toolpluginv1.Result{Content: []*toolpluginv1.Content{{Kind: toolpluginv1.Content_KIND_TEXT, Data: []byte(s)}}})
}

func chunk(b []byte) *toolpluginv1.CallResponse {
	return &toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Chunk{Chunk: &toolpluginv1.Chunk{Stream: toolpluginv1.Chunk_STREAM_STDOUT, Data: b}}}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "test plugin:", err)
		os.Exit(99)
	}
}
