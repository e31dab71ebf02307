package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

// limitAttacks use more than there is for the plugin.
func limitAttacks() []attack {
	bomb := func(set func(*Limits), program ...string) func(*scene) attempt {
		return func(*scene) attempt {
			return attempt{
				program: program,
				profile: func(p *Profile) { set(&p.Limits) },
				control: func(p *Profile) { p.Limits = Limits{} },
			}
		}
	}
	none := func(*Limits) {}
	memory := func(l *Limits) { l.Memory = MinMemory }
	inTmp := func(program ...string) func(*scene) attempt {
		return func(s *scene) attempt {
			return attempt{
				program: append(program, s.tmp),
				profile: func(p *Profile) { p.Confinement.TmpSize = tool.MiB },
			}
		}
	}
	return []attack{
		{name: "use up the memory (heap)", root: all, by: "limit `memory`", stage: bomb(memory, "memory", "400000000")},
		{name: "use up the memory (private mapping)", root: all, by: "limit `memory`", stage: bomb(memory, "map", "private")},
		{name: "use up the memory (shared mapping)", root: all, stage: bomb(memory, "map", "shared")},
		{name: "use up the memory (mapping that grows by itself)", root: all, stage: bomb(memory, "map", "growing")},
		{name: "use up the memory (shared mapping of `/dev/zero`)", root: all, stage: bomb(memory, "map", "device")},
		{name: "use up the memory (shared mapping), with a limit of address space", root: all, by: "limit `address_space`", stage: bomb(func(l *Limits) {
			l.Memory, l.AddressSpace = MinMemory, 3*tool.GiB
		}, "map", "shared", "10")},
		{name: "use up the memory by many small children", root: nowhere, stage: bomb(memory, "children")},
		{name: "use up the processes (fork bomb)", root: all, user: "is", stage: bomb(none, "fork")},
		{name: "use up the processes (threads)", root: all, user: "is", stage: bomb(none, "threads")},
		{name: "fill the disk by one file", root: all, by: "limit `file_size`", stage: bomb(func(l *Limits) { l.FileSize = tool.MiB }, "fill", "one", ".")},
		{name: "fill the disk by many files in the workspace", root: nowhere, stage: bomb(func(l *Limits) { l.FileSize = tool.MiB }, "fill", "many", ".")},
		{name: "fill the temporary directory by many files", root: "is", stage: inTmp("fill", "many")},
		{name: "fill the temporary directory by empty files", root: "is", stage: inTmp("fill", "empty")},
		{name: "use up the descriptors", root: all, by: "limit `open_files`", stage: bomb(func(l *Limits) { l.OpenFiles = 64 }, "open")},
		{name: "use up the processor", root: all, by: "limit `cpu_time`", stage: bomb(func(l *Limits) { l.CPUTime = time.Second }, "cpu")},
		{name: "raise its limits again", root: all, by: "hard limits", stage: func(*scene) attempt {
			return attempt{
				program: []string{"raise"},
				profile: func(p *Profile) { p.Limits.Stack = tool.MiB },
				// Without a hard limit, the program's own limit does not bind it.
				control: func(p *Profile) { p.Limits = Limits{} },
			}
		}},
	}
}

const bombSize = 300 << 20

// limitPrograms are the programs of limitAttacks, in addition to those of other tests.
func limitPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"memory":   useMemory,
		"cpu":      useCPU,
		"open":     openMany,
		"map":      mapMuch,
		"children": haveChildren,
		"child": func([]string) error {
			if _, err := mapMemory(unix.MAP_PRIVATE|unix.MAP_ANON, -1, 100<<20); err != nil {
				return err
			}
			fmt.Fprintln(os.Stdout, "full")
			_, err := os.Stdin.Read(make([]byte, 1))
			return err
		},
		"fork":    fork,
		"threads": threads,
		"fill":    fill,
		"raise": func([]string) error {
			var now unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_STACK, &now); err != nil {
				return err
			}
			high := unix.Rlimit{Cur: 2 << 20, Max: max(now.Max, 2<<20)}
			if err := unix.Prlimit(0, unix.RLIMIT_STACK, &high, nil); err != nil {
				return err
			}
			return done()
		},
	}
}

func mapMemory(flags, fd, size int) ([]byte, error) {
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	return memory, nil
}

// mapMuch maps 300 MiB and uses them, or maps the given number of GiB and uses none.
func mapMuch(args []string) error {
	flags, fd := unix.MAP_PRIVATE|unix.MAP_ANON, -1
	switch args[0] {
	case "shared":
		flags = unix.MAP_SHARED | unix.MAP_ANON
	case "growing":
		flags |= unix.MAP_GROWSDOWN
	case "device":
		var err error
		if fd, err = unix.Open("/dev/zero", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		flags = unix.MAP_SHARED
	}
	if len(args) == 2 {
		size, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		if _, err := unix.Mmap(fd, 0, size<<30, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_NORESERVE); err != nil {
			return err
		}
		return done()
	}
	if _, err := mapMemory(flags, fd, bombSize); err != nil {
		return err
	}
	return done()
}

// haveChildren uses as much through many children, each of which uses little.
func haveChildren([]string) error {
	for range bombSize / (100 << 20) {
		cmd := exec.Command("/proc/self/exe", "attack", "child")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		defer cmd.Wait()
		defer stdin.Close()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if _, err := stdout.Read(make([]byte, 1)); err != nil {
			return err
		}
	}
	return done()
}

// manyProcesses are more than a sandbox has by default.
const manyProcesses = DefaultProcesses + 50

// fork starts processes that do nothing, and ends them.
func fork([]string) error {
	var children []int
	defer func() {
		for _, pid := range children {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
	}()
	for range manyProcesses {
		pid, err := forkPaused()
		if err != nil {
			return err
		}
		children = append(children, pid)
	}
	return done()
}

// threads has many threads at a time. The runtime of Go ends the process if it
// cannot start one.
func threads([]string) error {
	running := make(chan struct{})
	for range manyProcesses {
		go func() { // ends with the process
			runtime.LockOSThread()
			running <- struct{}{}
			select {}
		}()
	}
	for range manyProcesses {
		<-running
	}
	return done()
}

// fill writes 8 MiB, or 400 empty files, and removes them.
func fill(args []string) error {
	dir, err := os.MkdirTemp(args[1], "fill-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	count, size := 1, 8<<20
	switch args[0] {
	case "many":
		count, size = 64, 128<<10
	case "empty":
		count, size = 400, 0
	}
	for i := range count {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), make([]byte, size), 0o600); err != nil {
			return err
		}
	}
	return done()
}
