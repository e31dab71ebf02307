package sdktest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"

	"github.com/toolhost/toolhost/sdk/display"
)

const (
	// maxHandshake bounds the output up to the end of the handshake.
	maxHandshake = 64 << 10
	// strayGrace is how long to wait for a handshake after other output. If it comes, the
	// program is a plugin that also prints something else.
	strayGrace = time.Second
)

// readStdout sends the lines up to the handshake and drops the rest, so that a plugin
// does not block when it prints.
func (r *process) readStdout(lines chan<- string) {
	in := bufio.NewReaderSize(r.stdout, maxHandshake)
	for room := maxHandshake; room > 0; {
		part, err := in.ReadSlice('\n')
		room -= len(part)
		line := strings.TrimSpace(string(part))
		if line != "" {
			lines <- line
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) || toolpluginv1.IsHandshake(line) {
			break
		}
	}
	close(lines)
	_, _ = io.Copy(io.Discard, in)
}

// awaitHandshake returns the handshake, which must be the first line, or an error that
// describes the output.
func (r *process) awaitHandshake(ctx context.Context, lines <-chan string) (string, error) {
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	var stray string
	var late <-chan time.Time
	for {
		select {
		case line, ok := <-lines:
			switch {
			case ok && toolpluginv1.IsHandshake(line) && stray == "":
				return line, nil
			case ok && toolpluginv1.IsHandshake(line):
				return "", fmt.Errorf("it printed %q before its handshake: a plugin must not write to standard output", display.Cut(stray, maxEcho))
			case ok && stray == "":
				stray, late = line, time.After(strayGrace)
			case !ok && stray == "":
				return "", errors.New("it is not a plugin: it closed its standard output without a handshake")
			case !ok:
				return "", notAPlugin(stray)
			}
		case <-late:
			return "", notAPlugin(stray)
		case <-timeout.C:
			return "", fmt.Errorf("it did not print its handshake within %v", startTimeout)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func notAPlugin(line string) error {
	return fmt.Errorf("it is not a plugin: it printed %q instead of a handshake, which begins with \"1|%d|unix|\"", display.Cut(line, maxEcho), toolpluginv1.Version)
}

// checkHandshake returns everything in a handshake that a host refuses.
func checkHandshake(line, socketDir string) error {
	var problems []error
	for _, fault := range toolpluginv1.CheckHandshake(line, socketDir) {
		problems = append(problems, errors.New("handshake: "+fault.Text))
	}
	return errors.Join(problems...)
}

// talksToStrangers reports whether the plugin answers a client without a certificate.
func (r *process) talksToStrangers(ctx context.Context, address string) bool {
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		InsecureSkipVerify: true, //nolint:gosec // tests the plugin, and sends no secret
	}}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "unix", address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // it is no longer used
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // a closed connection is an answer, too
	}
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return false
	}
	// With TLS 1.3 a server refuses only after the client's handshake is done.
	n, _ := conn.Read(make([]byte, 1))
	return n > 0
}
