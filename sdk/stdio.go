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

// claimStdout returns the original standard output, and redirects descriptor 1 to
// standard error. The host reads one line from standard output, which must not be
// printed by the plugin's code or by a C library. It does this once.
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

// claimStdin returns the original standard input, and redirects descriptor 0 to an
// empty file. The original is the death pipe: the host writes nothing to it, and
// code that reads standard input would block forever.
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

// writeHandshake writes the line with the address and the certificate of the plugin.
func writeHandshake(host io.Writer, address net.Addr, certificate []byte) {
	line := fmt.Sprintf("%d|%d|%s|%s|%s|%s", plugin.CoreProtocolVersion, toolpluginv1.Version, address.Network(), address,
		plugin.ProtocolGRPC, base64.RawStdEncoding.EncodeToString(certificate))
	if os.Getenv("PLUGIN_MULTIPLEX_GRPC") != "" {
		line += "|true" // the host requires this field
	}
	// An error means that the host is gone; exitWithHost ends the process.
	_, _ = fmt.Fprintln(host, line)
}
