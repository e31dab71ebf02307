package sandbox

import (
	"bytes"
	"cmp"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// files are what a program reaches of the file system, every path once as it is
// spelled.
type files struct {
	read, exec, write []string
	devices           []string
	mapped            []string // libraries, below read
	pinned            []string // below write, but not to be changed
	hidden            []string
	tmp               []string // with namespaces: in memory
	execTmp           []string // temporary directories to execute from; those of the host are not bound
	plan              *plan
}

// systemDirs are where a system has its programs and libraries.
func systemDirs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

// loaderFiles are what it takes to load a program that is linked dynamically.
func loaderFiles() []string {
	return append(systemDirs(), "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives")
}

// commonFiles are read by nearly every program, and say nothing of anybody.
func commonFiles() []string {
	return []string{"/etc/localtime", "/usr/share/zoneinfo", "/etc/mime.types", "/usr/share/mime"}
}

// networkFiles are those of programs that have a network: names and certificates.
func networkFiles() []string {
	return []string{
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/etc/hosts",
		"/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	}
}

// accountFiles tell programs of the system which users there are.
func accountFiles() []string { return []string{"/etc/passwd", "/etc/group"} }

// devices are those that a program may use. Without mounts, terminals are those of
// its user, who may type secrets there.
func devices(pty bool) []string {
	all := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
	if pty {
		all = append(all, "/dev/ptmx", "/dev/pts", "/dev/tty")
	}
	return all
}

// files works out what the program reaches.
func (p *plan) files() *files {
	c := &p.profile.Confinement
	f := &files{
		plan: p, read: slices.Concat(commonFiles(), c.Read), write: slices.Concat(p.profile.Own, c.Write),
		devices: devices(len(c.Exec) > 0 && p.on[LayerMounts]), hidden: slices.Clone(p.profile.Hidden),
	}
	f.tmp = append([]string{"/tmp", "/var/tmp", "/dev/shm"}, nonEmpty(p.profile.Tmp)...)
	if !p.on[LayerMounts] {
		f.write = append(f.write, nonEmpty(p.profile.Tmp)...)
		f.tmp = nil
	}
	for _, path := range c.Exec {
		switch path {
		case ExecSystem:
			f.exec = append(f.exec, systemDirs()...)
		case ExecWorkspace:
			f.exec = append(f.exec, nonEmpty(p.profile.Workspace)...)
		case ExecTmp:
			f.execTmp = slices.Concat(f.tmp, nonEmpty(p.profile.Tmp))
		default:
			f.exec = append(f.exec, path)
			f.load(path)
		}
	}
	if len(c.Exec) > 0 {
		f.read = slices.Concat(f.read, loaderFiles(), accountFiles())
		f.mapped = systemDirs()
	}
	f.loadFile(p.profile.Binary)
	switch ws := nonEmpty(p.profile.Workspace); c.Workspace {
	case NoWorkspace:
	case ReadWorkspace:
		f.read = append(f.read, ws...)
	case WriteWorkspace:
		f.write = append(f.write, ws...)
	}
	f.pinned = p.pinned()
	if p.tooOpen() {
		holds := func(dir string) bool {
			return slices.ContainsFunc(f.pinned, func(path string) bool { return within(path, realPath(dir)) })
		}
		f.read = append(f.read, slices.DeleteFunc(slices.Clone(f.write), func(dir string) bool { return !holds(dir) })...)
		f.write = slices.DeleteFunc(f.write, holds)
	}
	if c.Network == NetworkHost || len(c.Exec) > 0 {
		f.read = append(f.read, networkFiles()...)
	}
	if c.Network == NetworkHost {
		// It is often a link into a directory that is hidden otherwise.
		if target, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
			f.read = append(f.read, target)
		}
	}
	return f
}

// tooOpen reports whether the program could change, with the help of programs
// that it executes, what it must not change in a directory that it may write.
// Then it may only read there.
func (p *plan) tooOpen() bool {
	return p.checksOnly() && len(p.profile.Confinement.Exec) > 0 && p.on[LayerLandlock]
}

// checksOnly reports whether something must not be changed in a directory that may,
// and nothing but the checks of tools prevents it: it takes mounts to take a part of
// a directory away again.
func (p *plan) checksOnly() bool { return !p.on[LayerMounts] && len(p.pinned()) > 0 }

// pinned returns what of guarded is there.
func (p *plan) pinned() []string {
	return slices.DeleteFunc(p.guarded(), func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil // there is nothing that it could be mounted on
	})
}

// guarded returns what is in a place that can be written and must not be changed:
// where it is, where it leads, and every symbolic link on the way there.
func (p *plan) guarded() []string {
	dirs := resolved(p.profile.writable())
	var guarded []string
	for _, path := range p.profile.protected() {
		for _, place := range append(linksOn(path), placeOf(path), realPath(path)) {
			if anyWithin(dirs, place) {
				guarded = append(guarded, place)
			}
		}
	}
	return unique(guarded)
}

// linksOn returns the places of the symbolic links that a path leads through.
func linksOn(path string) []string {
	var links []string
	for at := path; at != "/" && at != "."; at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			links = append(links, placeOf(at))
		}
	}
	return links
}

// load allows what it takes to load the program at path.
func (f *files) load(path string) {
	// Not to wait for the other end of a FIFO, which a plugin may have put there.
	program, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // there is nothing to execute
	}
	defer func() { _ = program.Close() }() // it was only read
	if info, err := program.Stat(); err == nil && info.Mode().IsRegular() {
		f.loadFile(program)
	}
}

// loadFile allows what it takes to load a program: its interpreter or its loader,
// and the libraries of the system.
func (f *files) loadFile(program *os.File) {
	name := interpreter(program)
	switch {
	case name == "":
		name = loaderOf(program)
	case filepath.Base(name) == "env":
		f.exec = append(f.exec, systemDirs()...) // it finds the interpreter itself
	default:
		f.load(name)
	}
	if name != "" {
		f.exec = append(f.exec, name)
		f.read = append(f.read, loaderFiles()...)
		f.mapped = systemDirs()
	}
}

// loaderOf returns the dynamic loader that a program names, "" if it names none.
func loaderOf(program io.ReaderAt) string {
	file, err := elf.NewFile(program)
	if err != nil {
		return ""
	}
	for _, segment := range file.Progs {
		if segment.Type != elf.PT_INTERP || segment.Filesz > 4096 {
			continue
		}
		name := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(name, 0); err != nil {
			return ""
		}
		return strings.TrimRight(string(name), "\x00")
	}
	return ""
}

// landlock returns the access rules for the files. A device that was bound or
// mounted anew has the same path.
func (f *files) landlock() *launch.Landlock {
	proc := "/proc/self"
	// What it executes has other entries there. What they hold of other processes'
	// secrets, Landlock keeps from it.
	if f.plan.on[LayerProc] || len(f.plan.profile.Confinement.Exec) > 0 {
		proc = "/proc"
	}
	read, devices := append(resolved(f.read), proc), slices.Clone(f.devices)
	if !f.plan.filter().SharedMemory {
		// Mapped to be written, it is memory that processes share.
		const zero = "/dev/zero"
		devices = slices.DeleteFunc(devices, func(path string) bool { return path == zero })
		read = append(read, zero)
	}
	return &launch.Landlock{
		Read: bytesOf(read), Exec: bytesOf(resolved(slices.Concat(f.exec, f.execTmp))),
		Write: bytesOf(resolved(append(slices.Clone(f.write), f.tmp...))), Devices: bytesOf(devices),
	}
}

// mounts returns what the program sees.
func (f *files) mounts() *launch.Mounts {
	c := &f.plan.profile.Confinement
	m := &launch.Mounts{
		Minimal: f.plan.minimal, Tmp: bytesOf(f.tmp), TmpSize: uint64(cmp.Or(c.TmpSize, DefaultTmpSize)), TmpExec: slices.Contains(c.Exec, ExecTmp),
		Hidden: bytesOf(f.hidden), Masked: bytesOf(f.plan.masked()), Proc: f.plan.on[LayerProc], Pty: len(c.Exec) > 0,
	}
	if !m.Minimal {
		m.Hidden = append(m.Hidden, launch.Bytes("/run"))
	}
	// Only a namespace of processes has something to hide there.
	m.HostProc = !m.Proc && !f.plan.on[LayerPIDNS]
	r := &files{
		write: resolved(f.write), pinned: f.pinned,
		exec: resolved(slices.Concat(f.exec, f.mapped)), // what is mapped to be executed is not executed: libraries
	}
	for _, path := range unique(slices.Concat(f.read, f.exec, f.write, f.pinned)) {
		r.bind(m, path)
	}
	for _, device := range f.devices {
		if device == "/dev/ptmx" || device == "/dev/pts" {
			continue // of its own
		}
		target := realPath(device)
		m.Binds = append(m.Binds, launch.Bind{Path: launch.Bytes(target), Write: true, Dev: true})
		if m.Minimal && target != device {
			m.Links = append(m.Links, launch.Link{Path: launch.Bytes(device), Target: launch.Bytes(target)})
		}
	}
	if m.Minimal && m.HostProc {
		m.Binds = append(m.Binds, launch.Bind{Path: launch.Bytes("/proc")})
	}
	slices.SortStableFunc(m.Links, func(a, b launch.Link) int { return bytes.Compare(a.Path, b.Path) })
	// Parents first, whatever their links.
	slices.SortStableFunc(m.Binds, func(a, b launch.Bind) int { return bytes.Compare(a.Path, b.Path) })
	m.Binds = slices.CompactFunc(m.Binds, func(a, b launch.Bind) bool {
		return bytes.Equal(a.Path, b.Path)
	})
	return m
}

// bind lets the program see a path, where symbolic links lead. What it may do there
// is not a matter of how the path is spelled.
func (f *files) bind(m *launch.Mounts, path string) {
	target, err := filepath.EvalSymlinks(path)
	if (err != nil || target != path) && slices.Contains(f.pinned, path) {
		m.Binds = append(m.Binds, launch.Bind{Path: launch.Bytes(path), Pin: true, Link: true})
	}
	if err != nil {
		return // there is nothing, or a link to nothing
	}
	m.Binds = append(m.Binds, launch.Bind{
		Path: launch.Bytes(target), Write: anyWithin(f.write, target) && !anyWithin(f.pinned, target), Exec: anyWithin(f.exec, target),
		Pin: slices.Contains(f.pinned, target),
	})
	if target == path || !m.Minimal {
		return // elsewhere the links are there
	}
	for _, dir := range systemDirs() {
		link, err := os.Readlink(dir)
		if err == nil && within(path, dir) {
			m.Links = append(m.Links, launch.Link{Path: launch.Bytes(dir), Target: launch.Bytes(link)})
			return
		}
	}
	// Not a second mount of the same files: what protects a part of them would be
	// missing there.
	m.Links = append(m.Links, launch.Link{Path: launch.Bytes(path), Target: launch.Bytes(target)})
}

// resolved returns where paths lead, each once. The launcher follows no links, which
// could lead elsewhere by then. What does not exist may exist in the sandbox.
func resolved(paths []string) []string {
	paths = slices.Clone(paths)
	for i, path := range paths {
		paths[i] = realPath(path)
	}
	return unique(paths)
}

// realPath returns where a path leads, and the path itself if that is nowhere.
func realPath(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// placeOf returns a path with all links followed but its own.
func placeOf(path string) string {
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}

// anyWithin reports whether path is one of dirs or below one.
func anyWithin(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(path, dir) })
}

// unique returns the paths sorted, so that each comes after those that it lies in.
func unique(paths []string) []string {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	return slices.Compact(paths)
}

func withoutWords(exec []string) []string {
	return slices.DeleteFunc(slices.Clone(exec), func(path string) bool {
		return path == ExecSystem || path == ExecWorkspace || path == ExecTmp
	})
}
