package reaper

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Send gives a reaper the files of its command: its standard input, output and error, and
// further ones. The reaper gets its own descriptors for them. Send also sends the beginning of
// the order, as much as the socket accepts at once, and returns its length n.
func Send(control *os.File, files []*os.File, order []byte) (n int, err error) {
	conn, err := control.SyscallConn()
	if err != nil {
		return 0, err
	}
	descriptors := make([]int, len(files))
	for i, f := range files {
		descriptors[i] = int(f.Fd())
	}
	rights := unix.UnixRights(descriptors...)
	writeErr := conn.Write(func(fd uintptr) bool {
		n, err = unix.SendmsgN(int(fd), order, rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN)
	})
	return max(0, n), errors.Join(writeErr, err)
}

var errFiles = errors.New("the command's files have not come")

// receive waits for the order and the files of the command. It returns their descriptors in
// ascending order, so that none is overwritten before it is copied.
func receive() (*Order, []int, error) {
	var first [1]byte
	oob := make([]byte, unix.CmsgSpace(4*(3+MaxFiles)))
	for {
		n, size, _, _, err := unix.Recvmsg(ControlFD, first[:], oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != 1 {
			return nil, nil, errFiles
		}
		messages, err := unix.ParseSocketControlMessage(oob[:size])
		if err != nil || len(messages) != 1 {
			return nil, nil, errFiles
		}
		files, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(files) < 3 {
			return nil, nil, errFiles
		}
		for i, fd := range files {
			if fd <= ReportFD || i > 0 && fd <= files[i-1] {
				return nil, nil, errFiles
			}
		}
		order, err := DecodeOrder(io.MultiReader(bytes.NewReader(first[:]), descriptor(ControlFD)))
		return order, files, err
	}
}
