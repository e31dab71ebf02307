package auth

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// shortAddress returns an address of the control socket by an open directory.
func shortAddress(dir string) (address string, done func(), err error) {
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), ControlSocket), func() { _ = f.Close() }, nil
}
