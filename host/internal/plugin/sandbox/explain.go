package sandbox

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// explain turns an error of execve(2) into a message about the file and its remedy. It returns
// other errors unchanged.
func explain(err error, binary *os.File) error {
	f, ok := errors.AsType[*launch.StepError](err)
	if !ok || !f.Exec {
		return err
	}
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s; build it for %s/%s: %w", contentOf(binary), runtime.GOOS, runtime.GOARCH, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("it is not executable%s; set its mode (chmod +x), and check that its file system is not mounted noexec: %w", modeOf(binary), err)
	case errors.Is(err, syscall.ENOENT):
		if name := interpreter(binary); name != "" {
			return fmt.Errorf("it is a script for %s, which does not exist: %w", name, err)
		}
		return fmt.Errorf("its dynamic loader does not exist; link it statically (CGO_ENABLED=0): %w", err)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("its arguments and environment do not fit into a quarter of its stack limit; raise the limit stack: %w", err)
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("its limits address_space, memory or stack are too low to load it: %w", err)
	case errors.Is(err, syscall.ETXTBSY):
		return fmt.Errorf("it is open for writing; start it when it is complete: %w", err)
	default:
		return err
	}
}

func modeOf(binary *os.File) string {
	info, err := binary.Stat()
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (mode %v)", info.Mode())
}

// contentOf describes a file that is not an executable for this machine.
func contentOf(binary *os.File) string {
	var head [20]byte
	n, err := binary.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "it cannot be read"
	}
	switch {
	case n == 0:
		return "it is empty"
	case !bytes.HasPrefix(head[:], []byte(elf.ELFMAG)) || n < len(head):
		return "it is not an executable for this machine: neither an ELF program nor a script with #!"
	}
	machine := elf.Machine(uint16(head[18]) | uint16(head[19])<<8)
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		machine = elf.Machine(uint16(head[18])<<8 | uint16(head[19]))
	}
	name := strings.ToLower(strings.TrimPrefix(machine.String(), "EM_"))
	return "it is not an executable for this machine (wrong architecture: it was built for " + name + ")"
}

func isScript(binary *os.File) bool {
	var head [2]byte
	_, err := binary.ReadAt(head[:], 0)
	return err == nil && string(head[:]) == "#!"
}

// interpreter returns the program that a script names in its first line; "" if the file is
// not a script.
func interpreter(binary *os.File) string {
	if !isScript(binary) {
		return ""
	}
	line := make([]byte, 256) // as much as the kernel reads
	n, err := binary.ReadAt(line, 2)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	first, _, _ := strings.Cut(string(line[:n]), "\n")
	if fields := strings.Fields(first); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// firstLine returns ": " and the first line that a dead launcher wrote to its standard
// error; "" if it wrote nothing.
func firstLine(stderr io.Reader) string {
	head := make([]byte, 512)
	n, err := io.ReadFull(stderr, head)
	if err != nil && n == 0 {
		return ""
	}
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	return ": " + line
}
