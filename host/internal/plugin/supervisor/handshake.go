package supervisor

import (
	"context"
	"fmt"
	"time"

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
			case !toolpluginv1.IsHandshake(line) && stray == "":
				stray = line
				late = time.After(strayGrace)
			case toolpluginv1.IsHandshake(line) && stray == "":
				return line, nil
			case toolpluginv1.IsHandshake(line):
				return "", refuse("it prints to standard output before its handshake",
					"it printed %q before its handshake: a plugin must not write to standard output", cutText(cleanLine(stray), maxShort))
			}
		case <-late:
			return "", notAPlugin(stray)
		case <-ctx.Done():
			r.end(fmt.Sprintf("did not print its handshake within %v", r.limit))
			<-r.exited // bounded: the process was killed
			return "", &crashError{crash: r.crash("its start"), slow: true}
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

// checkHandshake refuses what go-plugin would accept, or would refuse in words
// that help nobody.
func checkHandshake(line, socketDir string) error {
	for _, fault := range toolpluginv1.CheckHandshake(line, socketDir) {
		return refuse(fault.Brief, "handshake: %s", cutText(fault.Text, maxMessage))
	}
	return nil
}
