package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Profile says what to start and what it may do.
type Profile struct {
	// Binary is the program, opened for reading: an executable for this
	// machine, or a script with a "#!" line. It is executed by descriptor, so
	// that what was hashed is what runs. Launch does not close it. A script
	// finds itself open as descriptor 3, because its interpreter reads it from
	// there.
	Binary *os.File
	// Path is the program's configured path. It becomes argv[0].
	Path string
	// Args are the arguments after argv[0].
	Args []string
	// Env is the whole environment; nothing is inherited.
	Env []string
	// Dir is the working directory, an absolute path; "" means "/".
	Dir string
	// Limits bound what each process may use.
	Limits Limits
}

// check refuses what no launcher could start, so that the operator reads a
// reason instead of an error number.
func (p *Profile) check() error {
	if p.Binary == nil {
		return errors.New("no binary is open")
	}
	if p.Path == "" {
		return errors.New("the program has no path")
	}
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		return fmt.Errorf("the working directory %q is not an absolute path", p.Dir)
	}
	if strings.ContainsRune(p.Path, 0) || strings.ContainsRune(p.Dir, 0) {
		return errors.New("a path contains a NUL byte")
	}
	for i, arg := range p.Args {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %d contains a NUL byte", i+1)
		}
	}
	for _, entry := range p.Env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsRune(name, 0) {
			return fmt.Errorf("environment entry %q is not NAME=value", name)
		}
		if strings.ContainsRune(value, 0) {
			return fmt.Errorf("environment variable %s contains a NUL byte", name)
		}
	}
	if err := p.Limits.check(); err != nil {
		return err
	}
	info, err := p.Binary.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is not a regular file but %s; give the path of the program itself", kindOf(info.Mode()))
	}
	return nil
}

func kindOf(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	case mode&os.ModeDevice != 0:
		return "a device"
	default:
		return mode.Type().String()
	}
}
