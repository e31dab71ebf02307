package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// groups are the control groups of a launcher's programs (cgroups(7), version 2). They are
// in the launcher's own group, which is below the group of this process.
type groups struct {
	dir         string   // the launcher's own group
	lock        *os.File // of dir
	controllers []string // of its groups
	missing     Gap      // the zero value if nothing is missing
	made        int
}

// groupPrefix begins the names of launchers' groups. A group whose lock is free belongs to
// a dead launcher.
const groupPrefix = "toolhost."

// cpuPeriod is the kernel's default, in microseconds.
const cpuPeriod = 100_000

// wantedControllers returns the controllers that limits need.
func wantedControllers() []string { return []string{"memory", "pids", "cpu"} }

// newGroups makes the launcher's group.
func newGroups() (*groups, error) {
	mounted, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	mine, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	own, err := ownGroup(mounted, mine)
	if err != nil {
		return nil, err
	}
	sweepGroups(own)
	g, err := makeGroups(own)
	if err != nil {
		return nil, err
	}
	g.enable(own)
	return g, nil
}

// makeGroups makes the launcher's group in the group of the process. Another launcher may
// remove it before it is locked; then the next attempt uses another name.
func makeGroups(own string) (*groups, error) {
	for range 10 {
		dir, err := os.MkdirTemp(own, fmt.Sprintf("%s%d.", groupPrefix, os.Getpid()))
		if err != nil {
			return nil, fmt.Errorf("not delegated: %w", errors.Unwrap(err))
		}
		lock := lockGroup(dir)
		if lock == nil {
			continue
		}
		if _, err := os.Stat(dir); err == nil {
			return &groups{dir: dir, lock: lock}, nil
		}
		_ = lock.Close() // it was only opened
	}
	return nil, fmt.Errorf("no group in %s can be locked", own)
}

// ownGroup returns the directory of this process's group, from the contents of
// /proc/self/mountinfo and /proc/self/cgroup.
func ownGroup(mountinfo, cgroup []byte) (string, error) {
	path := ""
	for line := range bytes.Lines(cgroup) {
		if rest, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			path = string(bytes.TrimRight(rest, "\n"))
		}
	}
	if path == "" {
		return "", errors.New("this process is in no group of version 2")
	}
	for line := range bytes.Lines(mountinfo) {
		// 36 35 98:0 /root /mount/point options - type source options
		before, after, ok := strings.Cut(string(line), " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		below, err := filepath.Rel(fields[3], path)
		if err != nil || !filepath.IsLocal(below) {
			continue
		}
		return filepath.Join(fields[4], below), nil
	}
	return "", errors.New("control groups of version 2 are not mounted")
}

// sweepGroups kills and removes the groups of dead launchers.
func sweepGroups(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		if info, err := os.Stat(dir); err != nil || !ownedByUs(info) {
			continue
		}
		lock := lockGroup(dir)
		if lock == nil {
			continue // its launcher lives
		}
		killGroupIn(dir)
		removeGroup(dir)
		_ = lock.Close() // the group is gone
	}
}

// lockGroup returns the lock of a launcher's group; nil if another process holds it. A lock
// is used because process ids differ between namespaces.
func lockGroup(dir string) *os.File {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // it was only opened
		return nil
	}
	return f
}

func ownedByUs(info fs.FileInfo) bool {
	owner, err := ownerIn(info)
	return err == nil && owner.UID == os.Geteuid()
}

// enable enables the controllers that limits need, as far as possible.
func (g *groups) enable(own string) {
	offered, err := os.ReadFile(filepath.Join(own, "cgroup.controllers"))
	if err != nil {
		g.missing = Gap{Layer: LayerCgroup, Reason: err.Error()}
		return
	}
	if slices.ContainsFunc(strings.Fields(string(offered)), func(name string) bool { return slices.Contains(wantedControllers(), name) }) {
		leave(own)
	}
	var absent []string
	for _, name := range wantedControllers() {
		if !slices.Contains(strings.Fields(string(offered)), name) {
			absent = append(absent, name)
			continue
		}
		if err := g.enableOne(own, name); err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		g.controllers = append(g.controllers, name)
	}
	if len(absent) > 0 {
		g.missing = Gap{
			Layer: LayerCgroup, Reason: "limits of the whole tree are not delegated: " + strings.Join(absent, ", "),
			Remedy: remedy(LayerCgroup, nil),
		}
	}
}

// leave moves this process from its group into one below, if it is the only process there.
// A group with processes cannot enable controllers for the groups below ("no internal
// processes", cgroup-v2.rst). The group that a service manager delegates is such a group.
func leave(own string) {
	procs, err := os.ReadFile(filepath.Join(own, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(os.Getpid()) {
		return
	}
	dir := filepath.Join(own, "host")
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	// If this fails, enabling fails, too, and says why.
	_ = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600)
}

// enableOne enables one controller for the launcher's group and the groups in it.
func (g *groups) enableOne(own, name string) error {
	for _, dir := range []string{own, g.dir} {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0); err != nil {
			if errors.Is(err, unix.EBUSY) {
				return errors.New("the host shares its group with other processes")
			}
			return err
		}
	}
	return nil
}

// group is the control group of one program and everything that it starts.
type group struct {
	parent string // the launcher's group
	dir    string
	file   *os.File // the directory, to start a process in it
}

// make makes a group with limits.
func (g *groups) make(name string, l Limits) (*group, error) {
	g.made++
	dir := filepath.Join(g.dir, name+"-"+strconv.Itoa(g.made))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	made := &group{parent: g.dir, dir: dir}
	var err error
	if made.file, err = os.Open(dir); err != nil {
		made.remove()
		return nil, err
	}
	limits := map[string]string{}
	if slices.Contains(g.controllers, "memory") && l.Memory > 0 {
		limits["memory.max"], limits["memory.swap.max"], limits["memory.oom.group"] = strconv.FormatInt(int64(l.Memory), 10), "0", "1"
	}
	if slices.Contains(g.controllers, "pids") && l.Processes > 0 {
		limits["pids.max"] = strconv.FormatUint(l.Processes, 10)
	}
	if slices.Contains(g.controllers, "cpu") && l.CPUs > 0 {
		// The quota and the period, in microseconds.
		limits["cpu.max"] = fmt.Sprintf("%d %d", int64(l.CPUs*cpuPeriod), int64(cpuPeriod))
	}
	for file, value := range limits {
		err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600)
		if errors.Is(err, fs.ErrNotExist) && file == "memory.swap.max" {
			continue // a system without swap has no such file
		}
		if err != nil {
			made.remove()
			return nil, fmt.Errorf("set %s: %w", file, err)
		}
	}
	return made, nil
}

// kill kills every process in the group. No process can start in it meanwhile.
func (g *group) kill() {
	if g != nil {
		killGroupIn(g.dir)
	}
}

// killGroupIn kills every process in the control group of a directory and below. Before
// Linux 5.14 the kernel cannot; then only the walk over processes kills them.
func killGroupIn(dir string) {
	file, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, _ = file.WriteString("1") // it fails if the group is gone
	_ = file.Close()             // nothing is buffered
}

// outOfMemory reports whether a process was killed because the group had reached its memory
// limit.
func (g *group) outOfMemory() bool {
	if g == nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	if err != nil {
		return false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if count, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			return count != "0"
		}
	}
	return false
}

// remove removes the group once it is empty. If a process does not end, a later launcher
// removes the group.
func (g *group) remove() {
	if g == nil {
		return
	}
	if g.file != nil {
		_ = g.file.Close() // it was only opened
	}
	removeGroup(g.dir)
}

// removeGroup removes a group and the groups in it. It waits up to a second for killed
// processes to end.
func removeGroup(dir string) {
	inner, err := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	if err == nil {
		for _, file := range inner {
			removeGroup(filepath.Dir(file))
		}
	}
	patience, pause := time.NewTimer(time.Second), time.NewTicker(time.Millisecond)
	defer patience.Stop()
	defer pause.Stop()
	for errors.Is(unix.Rmdir(dir), unix.EBUSY) {
		// There is no event to wait for: a killed process stays in its group until its
		// parent reaps it.
		select {
		case <-pause.C:
		case <-patience.C:
			return
		}
	}
}

// close removes the launcher's group.
func (g *groups) close() {
	if g != nil {
		removeGroup(g.dir)
		_ = g.lock.Close() // the group is removed
	}
}
