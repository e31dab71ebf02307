package supervisor

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-plugin"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// awaitHandshake returns the handshake if it is the first line of output.
func (r *processRunner) awaitHandshake(ctx context.Context, lines <-chan string) (string, error) {
	var stray string
	var late <-chan time.Time
	for {
		select {
		case line, ok := <-lines:
			switch {
			case !ok && stray == "":
				return "", r.endedBefore()
			case !ok:
				return "", notAPlugin(stray)
			case !isHandshake(line) && stray == "":
				stray = line
				late = time.After(strayGrace)
			case isHandshake(line) && stray == "":
				return line, nil
			case isHandshake(line):
				return "", refuse("it prints to standard output before its handshake",
					"it printed %q before its handshake: a plugin must not write to standard output", cutText(cleanLine(stray), maxShort))
			}
		case <-late:
			return "", notAPlugin(stray)
		case <-ctx.Done():
			r.end(fmt.Sprintf("did not print its handshake within %v", r.limit))
			<-r.exited // bounded: the process was killed
			return "", &crashError{crash: r.crash("its start")}
		}
	}
}

func notAPlugin(line string) error {
	return refuse("its program is not a plugin",
		"it is not a plugin: it printed %q instead of a handshake such as 1|%d|unix|...", cutText(cleanLine(line), maxShort), toolpluginv1.Version)
}

// endedBefore says why there is no handshake. A process that ends its output
// nearly always ends itself.
func (r *processRunner) endedBefore() error {
	select {
	case <-r.exited:
		return &crashError{crash: r.crash("its handshake")}
	case <-time.After(exitGrace):
		return refuse("its program is not a plugin", "it is not a plugin: it closed its standard output without a handshake")
	}
}

// isHandshake reports whether a line is meant as one: 1|1|unix|/path|grpc|...
func isHandshake(line string) bool {
	core, rest, _ := strings.Cut(line, "|")
	_, err := strconv.Atoi(core)
	return err == nil && strings.Count(rest, "|") >= 2
}

// checkHandshake refuses what go-plugin would accept, or would refuse in words
// that help nobody.
func checkHandshake(line, socketDir string) error {
	parts := strings.Split(line, "|")
	parts = append(parts, make([]string, max(6-len(parts), 0))...) // absent ones are empty
	core, version, network, address, protocol, certificate := parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]
	switch {
	case core != strconv.Itoa(plugin.CoreProtocolVersion):
		return refuse("it is built for another go-plugin", "it speaks go-plugin's core protocol %s, expected %d", cleanLine(core), plugin.CoreProtocolVersion)
	case version != strconv.Itoa(toolpluginv1.Version):
		return refuse("it speaks another version of the plugin contract",
			"it speaks version %s of the plugin contract, expected %d: build it with an sdk of this host's version", cleanLine(version), toolpluginv1.Version)
	case protocol != string(plugin.ProtocolGRPC):
		return refuse("it does not speak gRPC", "it speaks %q, expected grpc", cleanLine(protocol))
	case network != "unix":
		return refuse("it does not listen on a unix socket", "it listens on %q, expected a unix socket", cleanLine(network))
	case filepath.Dir(filepath.Clean(address)) != socketDir:
		// Otherwise a plugin could make the host speak to anybody's socket.
		return refuse("its socket is not where it belongs", "its socket is %q, expected one in the directory $%s", cleanLine(address), plugin.EnvUnixSocketDir)
	case certificate == "":
		return refuse("it does not offer TLS", "its handshake has no certificate: serve with TLS (the sdk does) and put the certificate into the handshake's sixth field")
	}
	if err := checkServerCert(certificate); err != nil {
		return refuse("the certificate in its handshake cannot be read", "%w", err)
	}
	return nil
}
