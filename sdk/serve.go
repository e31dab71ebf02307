package sdk

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Static windows: a result of some megabytes is sent without waiting for updates
// of the window (measured: 9.9 ms instead of 17.6 for 4 MB).
const (
	streamWindow = 8 << 20
	connWindow   = 16 << 20
)

// Serve answers the host until the host stops the plugin or ends, and then ends
// the process. It never returns.
//
// If the plugin has mistakes (see [Plugin.Err]) or was not started by a host, Serve
// prints the reason to standard error and exits with status 1.
func (p *Plugin) Serve() {
	if err := p.Err(); err != nil {
		fmt.Fprintf(os.Stderr, "plugin %q cannot be served:\n%v\n", p.name, err)
		os.Exit(1)
	}
	if !startedByHost() {
		fmt.Fprint(os.Stderr, p.startedByHand())
		os.Exit(1)
	}
	err := p.serve()
	p.stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "serve plugin %q: %v\n", p.name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ServeInsecure answers a host on l, without a handshake and without TLS, until
// ctx ends. Then it closes l, cancels the calls that still run, runs the
// functions given to [Plugin.OnStop] and returns nil. It returns an error if the
// plugin has mistakes (see [Plugin.Err]) or l fails.
//
// It is for tests, such as those of package sdktest: any client of l can call the
// tools. A plugin process calls [Plugin.Serve].
func (p *Plugin) ServeInsecure(ctx context.Context, l net.Listener) error {
	if err := p.Err(); err != nil {
		return err
	}
	server := newGRPCServer(nil)
	p.register(server)
	stopped := make(chan struct{})
	end := context.AfterFunc(ctx, func() { // ends with the server
		server.Stop()
		close(stopped)
	})
	err := server.Serve(l)
	if end() { // l has failed
		server.Stop()
	} else {
		<-stopped
		err = nil
	}
	p.stop()
	return err
}

func (p *Plugin) startedByHand() string {
	path, err := os.Executable()
	if err != nil {
		path = p.name
	}
	highest := tool.ReadOnly
	for _, spec := range p.Tools() {
		highest = max(highest, spec.Tier)
	}
	return fmt.Sprintf(`%s %s is a plugin: a toolhost starts it. Put this into the host's config.hcl:

plugin %q {
  path   = %q
  tier   = %q
  claims = "trust"
}
`, p.name, p.version, p.name, path, highest)
}

// startedByHost reports whether the environment holds the host's cookie.
func startedByHost() bool {
	h := toolpluginv1.Handshake()
	return os.Getenv(h.MagicCookieKey) == h.MagicCookieValue
}

func (p *Plugin) serve() error {
	identity, err := newIdentity(os.Getenv("PLUGIN_CLIENT_CERT"))
	if err != nil {
		return err
	}
	host, err := claimStdout()
	if err != nil {
		return err
	}
	stdin, err := claimStdin()
	if err != nil {
		return err
	}
	go p.exitWithHost(stdin) // ends with the process
	listening := make(chan *plugin.ReattachConfig, 1)
	defer close(listening)
	go func() { // ends with the handshake, or without one when Serve returns
		if at, ok := <-listening; ok {
			writeHandshake(host, at.Addr, identity.certificate())
		}
	}()
	// A terminal sends SIGINT to the host's whole process group; the host decides.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)

	config := &plugin.ServeConfig{
		HandshakeConfig: toolpluginv1.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{
			toolpluginv1.Version: {toolpluginv1.ServiceName: &service{plugin: p}},
		},
		Logger:     newLogger(p.name),
		GRPCServer: newGRPCServer,
		// Without this, go-plugin replaces os.Stdout and os.Stderr while
		// goroutines of the plugin may use them, and sends their output through
		// gRPC, where it is lost when the process dies and blocks the process
		// when the host does not read. Its handshake has no certificate.
		Test: &plugin.ServeTestConfig{ReattachConfigCh: listening},
	}
	if identity != nil {
		config.TLSProvider = func() (*tls.Config, error) { return identity.config, nil }
	}
	plugin.Serve(config)
	return nil
}

// exitWithHost ends the process when the host closes its end of standard input.
// The kernel closes it for a host that was killed.
func (p *Plugin) exitWithHost(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	p.stop()
	os.Exit(0)
}

func newGRPCServer(options []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(
		options,
		grpc.MaxRecvMsgSize(toolpluginv1.MaxMessageBytes),
		grpc.MaxSendMsgSize(toolpluginv1.MaxMessageBytes),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
	)...)
}

// service implements [plugin.GRPCPlugin].
type service struct {
	plugin.NetRPCUnsupportedPlugin
	plugin *Plugin
}

// GRPCServer implements [plugin.GRPCPlugin].
func (s *service) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	s.plugin.register(server)
	return nil
}

// GRPCClient implements [plugin.GRPCPlugin]. The sdk is never the client.
func (s *service) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("plugin %q serves, it does not call", s.plugin.name)
}
