package sdktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk"
)

// Target is a plugin that can be started any number of times. Make it with
// [InProcess] or [Binary].
type Target struct {
	path  string
	err   func() error
	serve func(context.Context, net.Listener) error // until the context ends
}

// InProcess returns the plugin p as a Target in this process. Checks that need a
// process, such as that it ends with its host, are skipped.
func InProcess(p *sdk.Plugin) Target { return Target{err: p.Err, serve: p.ServeInsecure} }

// Binary returns the plugin program at path as a Target.
func Binary(path string) Target { return Target{path: path} }

// launch starts the plugin; the caller closes it.
func (t Target) launch(ctx context.Context, options Options) (*Plugin, error) {
	options.Context.User = cmp.Or(options.Context.User, "tester")
	options.Context.Session = cmp.Or(options.Context.Session, "sdktest")
	options.Context.Attempt = max(options.Context.Attempt, 1)
	p := &Plugin{options: options}
	if err := options.Limits.check(); err != nil {
		return nil, err
	}
	if t.path != "" {
		return p, startProcess(ctx, p, t.path)
	}
	if options.Limits != (Limits{}) {
		return nil, errors.New("limits are those of a process: start a binary")
	}
	if t.err != nil {
		if err := t.err(); err != nil {
			return nil, err
		}
	}
	if err := p.serveHere(t.serve); err != nil {
		return nil, err
	}
	return p, nil
}

// serveHere serves the plugin over gRPC, without leaving the process.
func (p *Plugin) serveHere(serve func(context.Context, net.Listener) error) error {
	listener := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // as long as the plugin, which outlives any call
	served := make(chan struct{})
	go func() { // ends with ctx; stop waits for it
		defer close(served)
		_ = serve(ctx, listener) // a listener in memory does not fail
	}()
	conn, err := grpc.NewClient("passthrough:///plugin", append(dialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	)...)
	p.stop = func() {
		if conn != nil {
			_ = conn.Close()
		}
		cancel()
		<-served
	}
	if err != nil {
		p.stop()
		return fmt.Errorf("connect: %w", err)
	}
	p.conn, p.client = conn, toolpluginv1.NewPluginServiceClient(conn)
	return nil
}

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(toolpluginv1.MaxMessageBytes), grpc.MaxCallSendMsgSize(toolpluginv1.MaxMessageBytes),
	)}
}
