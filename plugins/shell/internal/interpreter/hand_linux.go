package interpreter

import (
	"encoding/json"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// handed is the number of files passed to an interpreter: its standard streams and
// the working directory of its command.
const handed = 4

// Hand passes an interpreter its files, and as much of its program as the socket
// accepts at once. It returns the rest.
func Hand(socket *os.File, p Program, files [handed]*os.File) (rest []byte, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	conn, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	var descriptors [handed]int
	for i, f := range files {
		descriptors[i] = int(f.Fd())
	}
	rights := unix.UnixRights(descriptors[:]...)
	n := 0
	writeErr := conn.Write(func(fd uintptr) bool {
		n, err = unix.SendmsgN(int(fd), text, rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN)
	})
	return text[max(0, n):], errors.Join(writeErr, err)
}

var errFiles = errors.New("the files of the command were not received")

// receive waits for a command, takes over its standard streams and changes to its
// directory. It returns the beginning of the program.
func receive() (first []byte, err error) {
	first = make([]byte, 1)
	oob := make([]byte, unix.CmsgSpace(4*handed))
	var n, size int
	for {
		n, size, _, _, err = unix.Recvmsg(socketFD, first, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil || n != 1 {
		return nil, errFiles
	}
	messages, err := unix.ParseSocketControlMessage(oob[:size])
	if err != nil || len(messages) != 1 {
		return nil, errFiles
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != handed {
		return nil, errFiles
	}
	for to, fd := range files[:handed-1] {
		if err := unix.Dup3(fd, to, 0); err != nil {
			return nil, err
		}
	}
	if err := unix.Fchdir(files[handed-1]); err != nil {
		return nil, err
	}
	for _, fd := range files {
		_ = unix.Close(fd) // nothing is buffered
	}
	return first, nil
}

// setEnvironment replaces the environment of the process with that of the program.
// If a variable is repeated, its last value counts, as in bash.
func (p *Program) setEnvironment() error {
	os.Clearenv()
	for _, entry := range p.Environment {
		name, value, _ := strings.Cut(entry, "=")
		if err := os.Setenv(name, value); err != nil { //nolint:forbidigo // this process is the command's
			return err
		}
	}
	return nil
}
