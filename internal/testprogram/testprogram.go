// Package testprogram writes the programs that tests execute.
package testprogram

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Write writes a program that can be executed at once, with mode 0755. If the test starts a
// process while a file is open for writing, the process inherits the descriptor until it
// executes its own program, and the kernel executes no file that is open for writing
// (golang.org/issue/22315). So Write lets no process start meanwhile.
func Write(path string, content io.Reader) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close(), os.Chmod(path, 0o755)) //nolint:gosec // a program
}
