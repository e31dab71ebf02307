package sdk

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// claimStdout takes descriptor 1 away from the program, points it at standard
// error and returns the original: the host reads one line from it, and a print
// of the plugin's code, or of a C library, must not be that line. It does so
// once, since there is one descriptor 1.
var claimStdout = sync.OnceValues(func() (*os.File, error) {
	// Close-on-exec: a command that the plugin starts must not hold it.
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate standard output: %w", err)
	}
	if err := redirect(2, 1); err != nil {
		return nil, fmt.Errorf("redirect standard output: %w", err)
	}
	return os.NewFile(uintptr(fd), "handshake"), nil
})

// claimStdin takes descriptor 0 away from the program, points it at an empty
// file and returns the original. It is the death pipe: nothing ever comes from
// it, and code that reads its standard input would wait for ever.
var claimStdin = sync.OnceValues(func() (*os.File, error) {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate standard input: %w", err)
	}
	empty, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("replace standard input: %w", err)
	}
	defer empty.Close()
	if err := redirect(int(empty.Fd()), 0); err != nil {
		return nil, fmt.Errorf("replace standard input: %w", err)
	}
	return os.NewFile(uintptr(fd), "death pipe"), nil
})

// standardError is the program's own: go-plugin replaces the variable.
var standardError = os.Stderr

// passHandshake gives go-plugin a pipe as os.Stdout and copies its handshake
// line to the host, with the certificate appended: go-plugin itself leaves
// that field empty when it is given a TLS configuration.
func passHandshake(certificate []byte) error {
	host, err := claimStdout()
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe for the handshake: %w", err)
	}
	os.Stdout = w
	go copyHandshake(host, standardError, r, certificate) // ends with the process
	return nil
}

// copyHandshake passes the handshake line to host and everything else, such as
// a print of another goroutine at that moment, to other. It returns when r
// ends.
func copyHandshake(host, other io.Writer, r io.Reader, certificate []byte) {
	start := fmt.Sprintf("%d|%d|unix|", plugin.CoreProtocolVersion, toolpluginv1.Version)
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if at := strings.LastIndex(line, start); at >= 0 {
			// core version, version, network, address, protocol, certificate
			fields := strings.Split(strings.TrimSpace(line[at:]), "|")
			if len(fields) >= 6 {
				fields[5] = base64.RawStdEncoding.EncodeToString(certificate)
				fmt.Fprintln(host, strings.Join(fields, "|"))
				line = line[:at]
			}
		}
		fmt.Fprint(other, line)
		if err != nil {
			return
		}
	}
}

// restoreStdio undoes what go-plugin does to os.Stdout and os.Stderr once it
// serves: it would send them through gRPC, where prints get lost when the
// process dies and block it when nobody reads. Everything printed goes to the
// process's own standard error instead.
func restoreStdio() {
	if startedByHost() {
		os.Stdout, os.Stderr = standardError, standardError
	}
}
