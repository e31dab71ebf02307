package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// growPipe enlarges a pipe beyond 64 KiB, so that a command that writes much waits less often.
// The system may refuse that to a user with many pipes.
func growPipe(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { // fails for a closed file
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize)
	})
}
