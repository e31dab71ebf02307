package process

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// coldStart is one way to start a plugin.
type coldStart struct {
	name     string
	launcher bool // through the launcher, with its limits; otherwise through go-plugin
	level    sandbox.Isolation
	tls      bool // mutual TLS with P-256 keys made for this start

	took []time.Duration
}

// BenchmarkColdStart measures the time from nothing to the answer of Describe
// of a real plugin, in each way, one after the other in each round.
func BenchmarkColdStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "hello")
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Dir = "../../../../examples/hello"
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := launcher.Close(); err != nil {
			b.Error(err)
		}
	}()
	// go-plugin hands its own standard input on, and a plugin ends with that.
	stdin, open, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer open.Close()
	before := os.Stdin
	os.Stdin = stdin
	defer func() { os.Stdin = before }()
	ways := []*coldStart{
		{name: "direct"},
		{name: "direct+tls", tls: true},
	}
	for _, level := range []sandbox.Isolation{sandbox.Off, sandbox.Basic, sandbox.Isolated, sandbox.Strict} {
		ways = append(ways, &coldStart{name: level.String() + "+tls", launcher: true, level: level, tls: true})
	}
	for b.Loop() {
		for _, w := range ways {
			w.took = append(w.took, w.start(b, launcher, program))
		}
	}
	base := median(ways[0].took)
	for _, w := range ways {
		b.ReportMetric(float64(median(w.took).Microseconds())/1e3, w.name+"-ms")
		b.ReportMetric(float64(median(w.took))/float64(base), w.name+"/direct")
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// start starts the program once, and ends it.
func (w *coldStart) start(b *testing.B, launcher *sandbox.Launcher, program string) time.Duration {
	b.Helper()
	began := time.Now()
	config := &plugin.ClientConfig{
		HandshakeConfig:  toolpluginv1.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{toolpluginv1.Version: {toolpluginv1.ServiceName: wirePlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		GRPCDialOptions:  dialOptions(),
		Logger:           hclog.NewNullLogger(),
	}
	var env []string
	if w.tls {
		tlsConfig, certPEM, err := clientTLS(began)
		if err != nil {
			b.Fatal(err)
		}
		config.TLSConfig = tlsConfig
		env = append(env, "PLUGIN_CLIENT_CERT="+string(certPEM))
	}
	if w.launcher {
		binary, err := os.Open(program)
		if err != nil {
			b.Fatal(err)
		}
		defer binary.Close()
		config.UnixSocketConfig = &plugin.UnixSocketConfig{TempDir: filepath.Dir(program)}
		config.RunnerFunc = func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
			return &launched{launcher: launcher, profile: sandbox.Profile{
				Binary: binary, Path: program, Limits: sandbox.DefaultLimits(), Env: slices.Concat(cmd.Env, env),
				Confinement: sandbox.Confinement{Isolation: w.level}, Own: []string{socketDir}, Tmp: filepath.Dir(program),
			}}, nil
		}
	} else {
		config.Cmd = exec.Command(program)
		config.Cmd.Env = env
	}
	client := plugin.NewClient(config)
	defer client.Kill()
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := protocol.Dispense(toolpluginv1.ServiceName)
	if err != nil {
		b.Fatal(err)
	}
	if err := raw.(*wire).describe(context.WithoutCancel(b.Context()), "bench", new(toolpluginv1.DescribeResponse)); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// launched is a process of the launcher as go-plugin sees it: [pluginRunner]
// would refuse one without TLS.
type launched struct {
	launcher *sandbox.Launcher
	profile  sandbox.Profile
	*sandbox.Process
}

var _ runner.Runner = (*launched)(nil)

func (l *launched) Start(ctx context.Context) (err error) {
	l.Process, err = l.launcher.Launch(ctx, l.profile)
	return err
}

func (l *launched) Wait(context.Context) error {
	<-l.Done()
	return nil
}

func (l *launched) Kill(context.Context) error {
	l.Process.Kill()
	return nil
}

func (l *launched) Stdout() io.ReadCloser                            { return l.Process.Stdout }
func (l *launched) Stderr() io.ReadCloser                            { return l.Process.Stderr }
func (l *launched) Name() string                                     { return l.profile.Path }
func (l *launched) ID() string                                       { return l.profile.Path }
func (l *launched) Diagnose(context.Context) string                  { return "" }
func (l *launched) PluginToHost(n, a string) (string, string, error) { return n, a, nil }
func (l *launched) HostToPlugin(n, a string) (string, string, error) { return n, a, nil }
