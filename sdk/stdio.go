package sdk

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
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

// writeHandshake tells the host where the plugin listens and by which
// certificate it is known, in one line.
func writeHandshake(host io.Writer, address net.Addr, certificate []byte) {
	line := fmt.Sprintf("%d|%d|%s|%s|%s|%s", plugin.CoreProtocolVersion, toolpluginv1.Version, address.Network(), address,
		plugin.ProtocolGRPC, base64.RawStdEncoding.EncodeToString(certificate))
	if os.Getenv("PLUGIN_MULTIPLEX_GRPC") != "" {
		line += "|true" // such a host expects to be told that go-plugin can do it
	}
	// A host that does not read is gone, and its end of standard input says so.
	_, _ = fmt.Fprintln(host, line)
}
