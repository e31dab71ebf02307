//go:build !linux

package auth

import "fmt"

func shortAddress(dir string) (address string, done func(), err error) {
	return "", nil, fmt.Errorf("the directory %s is too long for a socket: at most %d bytes",
		dir, maxSocketPath-len("/"+ControlSocket))
}
