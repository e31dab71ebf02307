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

// reap kills the programs of a host when the host ends for any reason. The kernel sends a signal
// too, but a program can avoid that by executing itself from another thread. reap returns an
// exit status.
func reap(in io.Reader) int {
	r := reaper{programs: map[int]int{}}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := r.note(lines.Text()); err != nil {
			fmt.Fprintln(os.Stderr, "toolhost:", err)
			return 2
		}
	}
	r.kill()
	return 0
}

// reaper holds the programs that a reaper kills.
type reaper struct {
	programs map[int]int // process id -> descriptor of the process
	group    string      // the launcher's control group; "" for none
}

// Lines from a host to its reaper. The start time distinguishes a program from a later
// process with the same id.
const (
	reaperProgram = "+%d %d\n"
	reaperEnd     = "-%d\n"
	reaperGroup   = "=%s\n"
)

// ReaperProgram returns the line that adds a program.
func ReaperProgram(pid int, started uint64) string { return fmt.Sprintf(reaperProgram, pid, started) }

// ReaperEnd returns the line that removes a program, which has ended.
func ReaperEnd(pid int) string { return fmt.Sprintf(reaperEnd, pid) }

// ReaperGroup returns the line that sets the control group of all programs.
func ReaperGroup(dir string) string { return fmt.Sprintf(reaperGroup, dir) }

func (r *reaper) note(line string) error {
	kind, rest := line[:min(1, len(line))], line[min(1, len(line)):]
	number, started, _ := strings.Cut(rest, " ")
	pid, err := strconv.Atoi(number)
	switch {
	case kind == "=" && strings.HasPrefix(rest, "/"):
		r.group = rest
		return nil
	case err != nil || pid <= 1:
	case kind == "+":
		r.add(pid, started)
		return nil
	case kind == "-":
		if fd, ok := r.programs[pid]; ok {
			_ = unix.Close(fd) // nothing is buffered
			delete(r.programs, pid)
		}
		return nil
	}
	return fmt.Errorf("%s is internal: only the host starts it", ReaperArgument)
}

func (r *reaper) add(pid int, started string) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	if strconv.FormatUint(proctree.StartTime(pid), 10) != started {
		_ = unix.Close(fd) // it is another process already
		return
	}
	r.programs[pid] = fd
}

// kill kills every program, and the processes that it started as far as they can be
// found.
func (r *reaper) kill() {
	if r.group != "" {
		file, err := os.OpenFile(r.group+"/cgroup.kill", os.O_WRONLY, 0)
		if err == nil {
			_, _ = file.WriteString("1") // it fails if the group is gone
			_ = file.Close()             // nothing is buffered
		}
	}
	for pid, fd := range r.programs {
		if errors.Is(unix.PidfdSendSignal(fd, 0, nil, 0), unix.ESRCH) {
			continue
		}
		proctree.KillBelow(pid)
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may have ended
	}
}
