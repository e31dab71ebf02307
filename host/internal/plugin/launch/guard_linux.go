package launch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/proctree"
)

// guard kills what its host has told it of when the host ends, in whatever way: a
// program can get rid of the signal that the kernel sends it then, by executing
// itself from another thread. It returns an exit status.
func guard(in io.Reader) int {
	g := guarded{programs: map[int]int{}}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := g.note(lines.Text()); err != nil {
			fmt.Fprintln(os.Stderr, "toolhost:", err)
			return 2
		}
	}
	g.kill()
	return 0
}

// guarded is what a guard kills.
type guarded struct {
	programs map[int]int // process id -> descriptor of the process
	group    string      // the launcher's control group; "" for none
}

// Lines that a host writes to its guard. A program is told with its start time, by
// which it is known from a later process with its number.
const (
	guardProgram = "+%d %d\n"
	guardEnd     = "-%d\n"
	guardGroup   = "=%s\n"
)

// GuardProgram is the line that tells a guard of a program.
func GuardProgram(pid int, started uint64) string { return fmt.Sprintf(guardProgram, pid, started) }

// GuardEnd is the line that tells a guard that a program has ended.
func GuardEnd(pid int) string { return fmt.Sprintf(guardEnd, pid) }

// GuardGroup is the line that tells a guard of the control group of all programs.
func GuardGroup(dir string) string { return fmt.Sprintf(guardGroup, dir) }

func (g *guarded) note(line string) error {
	kind, rest := line[:min(1, len(line))], line[min(1, len(line)):]
	number, started, _ := strings.Cut(rest, " ")
	pid, err := strconv.Atoi(number)
	switch {
	case kind == "=" && strings.HasPrefix(rest, "/"):
		g.group = rest
		return nil
	case err != nil || pid <= 1:
	case kind == "+":
		g.add(pid, started)
		return nil
	case kind == "-":
		if fd, ok := g.programs[pid]; ok {
			_ = unix.Close(fd) // nothing is buffered
			delete(g.programs, pid)
		}
		return nil
	}
	return fmt.Errorf("%s is internal: only the host starts it", GuardArgument)
}

func (g *guarded) add(pid int, started string) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	if strconv.FormatUint(proctree.StartTime(pid), 10) != started {
		_ = unix.Close(fd) // it is another's by now
		return
	}
	g.programs[pid] = fd
}

// kill ends every program, and what it has started as far as that can be found.
func (g *guarded) kill() {
	if g.group != "" {
		file, err := os.OpenFile(g.group+"/cgroup.kill", os.O_WRONLY, 0)
		if err == nil {
			_, _ = file.WriteString("1") // it fails if the group is gone
			_ = file.Close()             // nothing is buffered
		}
	}
	for pid, fd := range g.programs {
		if errors.Is(unix.PidfdSendSignal(fd, 0, nil, 0), unix.ESRCH) {
			continue
		}
		proctree.KillBelow(pid)
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may have ended
	}
}
