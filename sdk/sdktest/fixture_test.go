package sdktest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// fixtureVariable names the plugin that the test binary is instead of a test.
const fixtureVariable = "SDKTEST_FIXTURE"

func TestMain(m *testing.M) {
	if name := os.Getenv(fixtureVariable); name != "" {
		fixtures()[name]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fixture returns the test binary as a plugin.
func fixture(name string) (Target, Options) {
	options := echoOptions()
	// The race detector would let a process linger for a second.
	options.Env = []string{fixtureVariable + "=" + name, "GORACE=atexit_sleep_ms=0"}
	return Binary(os.Args[0]), options
}

func echoOptions() Options {
	return Options{Calls: []Call{{Tool: "echo", Args: map[string]string{"text": "hi"}}}}
}

// server is a plugin that does not use the sdk: it keeps the contract until a
// fixture changes something.
type server struct {
	toolpluginv1.UnimplementedPluginServiceServer
	describe *toolpluginv1.DescribeResponse
	call     func(*toolpluginv1.CallRequest, grpc.ServerStreamingServer[toolpluginv1.CallResponse]) error

	describeHook  func()
	configureHook func(*toolpluginv1.ConfigureResponse)
	keepsStdin    bool // does not watch its standard input
	ignoresDrain  bool
	drained       atomic.Bool
}

func newServer() *server {
	s := &server{describe: &toolpluginv1.DescribeResponse{
		Name: "fixture", Version: "1.0.0", Sdk: "none", Capabilities: []string{"drain"},
		Tools: []*toolpluginv1.Tool{{
			Name: "echo", Description: "Says it again.", Tier: toolpluginv1.Tier_TIER_READ_ONLY,
			InputSchemaJson: []byte(`{"type":"object","properties":{"text":{"type":"string","description":"what to say"}}}`),
		}},
	}}
	s.call = func(_ *toolpluginv1.CallRequest, stream grpc.ServerStreamingServer[toolpluginv1.CallResponse]) error {
		return stream.Send(textEvent("hi"))
	}
	return s
}

func textEvent(text string) *toolpluginv1.CallResponse {
	return resultEvent(&toolpluginv1.Result{Content: []*toolpluginv1.Content{
		{Kind: toolpluginv1.Content_KIND_TEXT, Data: []byte(text)},
	}})
}

func resultEvent(r *toolpluginv1.Result) *toolpluginv1.CallResponse {
	return &toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Result{Result: r}}
}

func progressEvent() *toolpluginv1.CallResponse {
	return &toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Progress{Progress: &toolpluginv1.Progress{}}}
}

func (s *server) Describe(context.Context, *toolpluginv1.DescribeRequest) (*toolpluginv1.DescribeResponse, error) {
	if s.describeHook != nil {
		s.describeHook()
	}
	return s.describe, nil
}

func (s *server) Configure(context.Context, *toolpluginv1.ConfigureRequest) (*toolpluginv1.ConfigureResponse, error) {
	response := &toolpluginv1.ConfigureResponse{}
	if s.configureHook != nil {
		s.configureHook(response)
	}
	return response, nil
}

func (s *server) Call(r *toolpluginv1.CallRequest, stream grpc.ServerStreamingServer[toolpluginv1.CallResponse]) error {
	failure := func(code, message string) error {
		return stream.Send(resultEvent(&toolpluginv1.Result{Error: &toolpluginv1.Error{Code: code, Message: message}}))
	}
	switch {
	case s.drained.Load() && !s.ignoresDrain:
		return failure("unavailable", "stopping")
	case r.GetTool() == "no_such_tool":
		return failure("not_found", "no such tool")
	}
	return s.call(r, stream)
}

func (s *server) Drain(context.Context, *toolpluginv1.DrainRequest) (*toolpluginv1.DrainResponse, error) {
	s.drained.Store(true)
	return &toolpluginv1.DrainResponse{}, nil
}

// serve does what a Go plugin without the sdk does.
func (s *server) serve() {
	if !s.keepsStdin {
		go func() { // ends with the process
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: toolpluginv1.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{
			toolpluginv1.Version: {toolpluginv1.ServiceName: &served{server: s}},
		},
		Logger: hclog.NewNullLogger(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxSendMsgSize(1<<30))...)
		},
	})
}

type served struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

func (s *served) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	toolpluginv1.RegisterPluginServiceServer(g, s.server)
	return nil
}

func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not a client")
}

// breakage is one way to break the contract, with the suite's finding.
type breakage struct {
	spoil   func(*server)
	want    string // part of a finding
	process bool   // only a process can show it
}

// target returns the spoilt plugin, and the options to check it with.
func (b breakage) target(name string) (Target, Options) {
	if b.process {
		return fixture(name)
	}
	return Target{serve: func(ctx context.Context, l net.Listener) error {
		s, server := newServer(), grpc.NewServer(grpc.MaxSendMsgSize(toolpluginv1.MaxMessageBytes))
		b.spoil(s)
		toolpluginv1.RegisterPluginServiceServer(server, s)
		defer context.AfterFunc(ctx, server.Stop)()
		return server.Serve(l)
	}}, echoOptions()
}

func answering(events ...*toolpluginv1.CallResponse) func(*server) {
	return func(s *server) {
		s.call = func(_ *toolpluginv1.CallRequest, stream grpc.ServerStreamingServer[toolpluginv1.CallResponse]) error {
			for _, e := range events {
				if err := stream.Send(e); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func withSchema(schema string) func(*server) {
	return func(s *server) { s.describe.Tools[0].InputSchemaJson = []byte(schema) }
}

func breakages() map[string]breakage {
	var describes atomic.Int64
	return map[string]breakage{
		"bad tool name": {
			func(s *server) { s.describe.Tools[0].Name = "Read-File" },
			`tool: tool "Read-File": the name "Read-File" is not valid`, false,
		},
		"bad plugin name": {
			func(s *server) { s.describe.Name = "Fix Ture" },
			`describe: the plugin's name "Fix Ture" is not valid`, false,
		},
		"bad version": {
			func(s *server) { s.describe.Version = "one" },
			`describe: the plugin's version "one" is not valid`, false,
		},
		"no description":         {func(s *server) { s.describe.Tools[0].Description = "" }, `tool "echo": has no description`, false},
		"hidden characters":      {func(s *server) { s.describe.Tools[0].Title = "\x1b[2J" }, `tool "echo": has invisible characters in its title`, false},
		"no tier":                {func(s *server) { s.describe.Tools[0].Tier = 0 }, `tool "echo": has no tier`, false},
		"no tools":               {func(s *server) { s.describe.Tools = nil }, `tool: the plugin has no tools`, false},
		"duplicate tool":         {func(s *server) { s.describe.Tools = append(s.describe.Tools, s.describe.Tools[0]) }, `the name "echo" is already taken by tool "echo"`, false},
		"schema not JSON":        {withSchema(`{"type":`), `input schema: not a JSON Schema`, false},
		"schema of unknown type": {withSchema(`{"type":"object","properties":{"a":{"type":"strng","description":"x"}}}`), `property "a" has the unknown type "strng"`, false},
		"root not an object":     {withSchema(`{"type":"string"}`), `input schema: the root is not an object`, false},
		"undescribed property":   {withSchema(`{"type":"object","properties":{"text":{"type":"string"}}}`), `property "text" has no description`, false},
		"untyped property":       {withSchema(`{"type":"object","properties":{"text":{"description":"x"}}}`), `property "text" has no type`, false},
		"nested property":        {withSchema(`{"type":"object","properties":{"a":{"type":"array","description":"x","items":{"type":"object","properties":{"b":{"type":"string"}}}}}}`), `property "a[].b" has no description`, false},
		"unknown role":           {withSchema(`{"type":"object","properties":{"a":{"type":"string","description":"x","x-role":"pth"}}}`), `property "a" has the unknown role pth`, false},
		"default does not fit":   {withSchema(`{"type":"object","properties":{"a":{"type":"string","description":"x","default":7}}}`), `input schema: not a valid JSON Schema`, false},
		"unstable describe": {
			func(s *server) {
				s.describeHook = func() { s.describe.Version = "1.0." + strconv.FormatInt(describes.Add(1), 10) }
			},
			`describe: it answers differently the second time`, false,
		},
		"refuses its settings": {
			func(s *server) {
				s.configureHook = func(r *toolpluginv1.ConfigureResponse) {
					r.Diagnostics = append(r.Diagnostics, &toolpluginv1.Diagnostic{
						Severity: toolpluginv1.Diagnostic_SEVERITY_ERROR, Summary: "too small", Path: []string{"size"},
					})
				}
			},
			`configure: settings ["size"]: too small`, false,
		},
		"dies in a call": {
			func(s *server) {
				s.call = func(*toolpluginv1.CallRequest, grpc.ServerStreamingServer[toolpluginv1.CallResponse]) error {
					go panic("a goroutine of the tool's own")
					select {}
				}
			},
			`the plugin dies`, true,
		},
		"never answers": {
			func(s *server) {
				s.call = func(_ *toolpluginv1.CallRequest, stream grpc.ServerStreamingServer[toolpluginv1.CallResponse]) error {
					<-stream.Context().Done()
					return stream.Context().Err()
				}
			},
			`it does not answer in time`, false,
		},
		"two results":        {answering(textEvent("a"), textEvent("b")), `it answers with more than one result`, false},
		"no result":          {answering(progressEvent()), `it ends without a result`, false},
		"talks after result": {answering(textEvent("a"), progressEvent()), `it sends more after its result`, false},
		"empty event":        {answering(&toolpluginv1.CallResponse{}, textEvent("a")), `it sends an empty event`, false},
		"text not UTF-8":     {answering(textEvent("\xff\xfe")), `text that is not UTF-8`, false},
		"unknown kind":       {answering(resultEvent(&toolpluginv1.Result{Content: []*toolpluginv1.Content{{Kind: 99}}})), `has the unknown kind 99`, false},
		"unknown error code": {
			answering(resultEvent(&toolpluginv1.Result{Error: &toolpluginv1.Error{Code: "ENOENT", Message: "no"}})),
			`its error has the unknown code "ENOENT"`, false,
		},
		"code of the host": {
			answering(resultEvent(&toolpluginv1.Result{Error: &toolpluginv1.Error{Code: "plugin_crashed", Message: "no"}})),
			`its error has the code "plugin_crashed", which only the host may use`, false,
		},
		"always internal": {
			answering(resultEvent(&toolpluginv1.Result{Error: &toolpluginv1.Error{Code: "internal", Message: "echo panicked"}})),
			`arguments: tool "echo": called with {} it fails because of its own mistake (internal): echo panicked`, false,
		},
		"metadata not an object": {answering(resultEvent(&toolpluginv1.Result{MetadataJson: []byte(`7`)})), `its metadata is not a JSON object`, false},
		"structured result does not match": {
			func(s *server) {
				s.describe.Tools[0].OutputSchemaJson = []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
				answering(resultEvent(&toolpluginv1.Result{StructuredJson: []byte(`{"n":"seven"}`)}))(s)
			},
			`its structured result does not match its output schema`, false,
		},
		"no structured result": {
			func(s *server) { s.describe.Tools[0].OutputSchemaJson = []byte(`{"type":"object"}`) },
			`it has an output schema and answers without a structured result`, false,
		},
		"status instead of a result": {
			func(s *server) {
				s.call = func(*toolpluginv1.CallRequest, grpc.ServerStreamingServer[toolpluginv1.CallResponse]) error {
					return status.Error(codes.NotFound, "no such file")
				}
			},
			`it answers with a gRPC status instead of a result`, false,
		},
		"result too large":   {func(s *server) { answering(textEvent(strings.Repeat("x", toolpluginv1.MaxMessageBytes+1)))(s) }, `it answers with a gRPC status instead of a result`, false},
		"fails a given call": {answering(resultEvent(&toolpluginv1.Result{Error: &toolpluginv1.Error{Code: "failed", Message: "always"}})), `call: tool "echo": fails: failed: always`, false},
		"does not hear of sessions": {
			func(s *server) { s.describe.Capabilities = append(s.describe.Capabilities, "end_session") },
			`session: the end of an unknown session is an error: `, false,
		},
		"takes calls after Drain": {
			func(s *server) { s.ignoresDrain = true },
			`a call after Drain ends with code "", want "unavailable"`, false,
		},
		"outlives its host": {func(s *server) { s.keepsStdin = true }, `exit: the process still runs`, true},
	}
}

// fixtures returns every plugin that the test binary can be.
func fixtures() map[string]func() {
	all := map[string]func(){
		"sound": newServer().serve,
		"prints before the handshake": func() {
			fmt.Fprintln(os.Stdout, "Starting up...")
			newServer().serve()
		},
		"ends at once":           func() { fmt.Fprintln(os.Stderr, "no licence"); os.Exit(3) },
		"not a plugin":           func() { fmt.Fprintln(os.Stdout, "usage: fixture [flags]") },
		"without TLS, elsewhere": func() { handshakeOnly("1|1|unix|/tmp/elsewhere.sock|grpc|") },
		"of another version":     func() { handshakeOnly("1|2|tcp|127.0.0.1:1|netrpc|YQ==") },
		"bare":                   func() { serveBare(tls.RequireAndVerifyClientCert) },
		"talks to strangers":     func() { serveBare(tls.RequestClientCert) },
		"sdk":                    func() { sample().Serve() },
		"sdk, stray prints":      straySample,
		"sdk, mistakes":          func() { mistaken().Serve() },
	}
	for name, b := range breakages() {
		if !b.process {
			continue
		}
		all[name] = func() {
			s := newServer()
			b.spoil(s)
			s.serve()
		}
	}
	return all
}

// handshakeOnly says that it is a plugin and waits for its host's end.
func handshakeOnly(line string) {
	fmt.Fprintln(os.Stdout, line)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// serveBare serves the contract without go-plugin and without any other service.
func serveBare(clients tls.ClientAuthType) {
	certificate, _, err := newCertificate()
	if err != nil {
		panic(err)
	}
	hosts := x509.NewCertPool()
	hosts.AppendCertsFromPEM([]byte(os.Getenv("PLUGIN_CLIENT_CERT")))
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: clients, ClientCAs: hosts, MinVersion: tls.VersionTLS13,
	})))
	toolpluginv1.RegisterPluginServiceServer(g, newServer())
	socket := filepath.Join(os.Getenv(plugin.EnvUnixSocketDir), "bare.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	go func() { _ = g.Serve(listener) }() // ends with the process
	handshakeOnly("1|1|unix|" + socket + "|grpc|" + base64.RawStdEncoding.EncodeToString(certificate.Certificate[0]))
}

// straySample prints to every output that it has.
func straySample() {
	p := sample()
	fmt.Fprintln(os.Stdout, "before Serve")
	_, _ = syscall.Write(1, []byte("from C, without a newline"))
	p.Serve()
}

func fixtureNames() []string { return slices.Sorted(maps.Keys(breakages())) }
