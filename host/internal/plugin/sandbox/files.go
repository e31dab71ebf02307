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

// files are the paths that a program reaches, as they are written.
type files struct {
	read, exec, write []string
	devices           []string
	mapped            []string // libraries, below read
	pinned            []string // below write, and not to be changed
	hidden            []string
	tmp               []string // in memory, with namespaces
	execTmp           []string // temporary directories to execute from; not bound from the host
	plan              *plan
}

// SystemDirs returns the directories of a system's programs and libraries: [ExecSystem].
func SystemDirs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

// loaderFiles returns the files that a dynamically linked program needs. Programs with
// OpenSSL, such as Node.js, do not start if they may not read its settings.
func loaderFiles() []string {
	return append(SystemDirs(), "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
		"/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies")
}

// commonFiles returns files that nearly every program reads and that are not private.
func commonFiles() []string {
	return []string{"/etc/localtime", "/usr/share/zoneinfo", "/etc/mime.types", "/usr/share/mime"}
}

// networkFiles returns the files of programs with a network: names and certificates.
func networkFiles() []string {
	return []string{
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/etc/hosts",
		"/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	}
}

// accountFiles returns the files that list the users of the system.
func accountFiles() []string { return []string{"/etc/passwd", "/etc/group"} }

// devices returns the devices that a program may use. Without mounts, it gets no
// terminals: they would be those of its user, who may type secrets there.
func devices(pty bool) []string {
	all := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
	if pty {
		all = append(all, "/dev/ptmx", "/dev/pts", "/dev/tty")
	}
	return all
}

// files returns the paths that the program reaches.
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
			f.exec = append(f.exec, SystemDirs()...)
		case ExecWorkspace:
			f.exec = append(f.exec, nonEmpty(p.profile.Workspace)...)
		case ExecTmp:
			f.execTmp = slices.Concat(f.tmp, nonEmpty(p.profile.Tmp))
		case ExecHome:
			f.exec = append(f.exec, p.profile.Own...)
		default:
			f.exec = append(f.exec, path)
			f.load(path)
		}
	}
	if len(c.Exec) > 0 {
		f.read = slices.Concat(f.read, loaderFiles(), accountFiles())
		f.mapped = SystemDirs()
	}
	f.loadFile(p.profile.Binary)
	switch ws := nonEmpty(p.profile.Workspace); c.Workspace {
	case NoWorkspace:
	case ReadWorkspace:
		f.read = append(f.read, ws...)
	case WriteWorkspace:
		f.write = append(f.write, ws...)
	}
	if c.Reader.On {
		f.keepTmp()
	}
	f.pinned = p.pinned()
	if p.tooOpen() {
		holds := func(dir string) bool {
			return slices.ContainsFunc(f.pinned, func(path string) bool { return within(path, realPath(dir)) })
		}
		f.read = append(f.read, slices.DeleteFunc(slices.Clone(f.write), func(dir string) bool { return !holds(dir) })...)
		f.write = slices.DeleteFunc(f.write, holds)
	}
	if c.Network != NetworkNone || len(c.Exec) > 0 {
		f.read = append(f.read, networkFiles()...)
	}
	if c.Network == NetworkHost {
		// It is often a link into a directory that is otherwise hidden.
		if target, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
			f.read = append(f.read, target)
		}
	}
	return f
}

// tooOpen reports whether the program could change protected files with the help of
// programs that it executes. Then it may only read the directories that hold them.
func (p *plan) tooOpen() bool {
	return p.checksOnly() && len(p.profile.Confinement.Exec) > 0 && p.on[LayerLandlock]
}

// checksOnly reports whether only the checks of tools protect files in writable
// directories: the kernel can protect a part of a directory with mounts only.
func (p *plan) checksOnly() bool { return !p.on[LayerMounts] && len(p.pinned()) > 0 }

// pinned returns the guarded paths that exist.
func (p *plan) pinned() []string {
	return slices.DeleteFunc(p.guarded(), func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil // there is nothing to mount on
	})
}

// guarded returns the protected paths in writable directories: each path, its target, and
// every symbolic link on the way.
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

// linksOn returns the symbolic links that a path leads through.
func linksOn(path string) []string {
	var links []string
	for at := path; at != "/" && at != "."; at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			links = append(links, placeOf(at))
		}
	}
	return links
}

// load allows what loading the program at path needs.
func (f *files) load(path string) {
	// Non-blocking: a plugin may have put a FIFO there.
	program, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // there is nothing to execute
	}
	defer func() { _ = program.Close() }() // it was only read
	if info, err := program.Stat(); err == nil && info.Mode().IsRegular() {
		f.loadFile(program)
	}
}

// loadFile allows what loading a program needs: its interpreter or its loader, and the
// libraries of the system.
func (f *files) loadFile(program *os.File) {
	name := interpreter(program)
	switch {
	case name == "":
		name = loaderOf(program)
	case filepath.Base(name) == "env":
		f.exec = append(f.exec, SystemDirs()...) // it finds the interpreter itself
	default:
		f.load(name)
	}
	if name != "" {
		f.exec = append(f.exec, name)
		f.read = append(f.read, loaderFiles()...)
		f.mapped = SystemDirs()
	}
}

// loaderOf returns the dynamic loader that a program names, or "".
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

// landlock returns the access rules for the files. A device that was bound or mounted again
// has the same path.
func (f *files) landlock() *launch.Landlock {
	proc := "/proc/self"
	// The programs that it executes have other entries there. Landlock itself keeps it from
	// the secrets in the entries of other processes.
	if f.plan.on[LayerProc] || len(f.plan.profile.Confinement.Exec) > 0 {
		proc = "/proc"
	}
	read, devices := append(resolved(f.read), proc), slices.Clone(f.devices)
	if !f.plan.filter().SharedMemory {
		// A writable mapping of it is memory that processes can share.
		const zero = "/dev/zero"
		devices = slices.DeleteFunc(devices, func(path string) bool { return path == zero })
		read = append(read, zero)
	}
	return &launch.Landlock{
		Read: bytesOf(read), Exec: bytesOf(resolved(slices.Concat(f.exec, f.execTmp))),
		Write: bytesOf(resolved(append(slices.Clone(f.write), f.tmp...))), Devices: bytesOf(devices),
	}
}

// keepTmp leaves out temporary directories that hold a listed path. The access rules cover what is
// mounted below a directory, and a read-only mount protects files, but not named pipes. All of the
// temporary directories are one file system, so it is not enough to leave out the rule.
func (f *files) keepTmp() {
	listed := resolved(slices.Concat(f.read, f.exec))
	f.tmp = slices.DeleteFunc(f.tmp, func(dir string) bool {
		return slices.ContainsFunc(listed, func(path string) bool { return within(path, realPath(dir)) })
	})
}

// mounts returns the file system that the program sees.
func (f *files) mounts() *launch.Mounts {
	c := &f.plan.profile.Confinement
	m := &launch.Mounts{
		Minimal: f.plan.minimal, Tmp: bytesOf(f.tmp), TmpSize: uint64(cmp.Or(c.TmpSize, DefaultTmpSize)), TmpExec: slices.Contains(c.Exec, ExecTmp),
		Hidden: bytesOf(f.hidden), Masked: bytesOf(f.plan.masked()), Proc: f.plan.on[LayerProc], Pty: len(c.Exec) > 0,
	}
	if !m.Minimal {
		m.Hidden = append(m.Hidden, launch.Bytes("/run"))
	}
	// Without a PID namespace, the host's /proc hides nothing more.
	m.HostProc = !m.Proc && !f.plan.on[LayerPIDNS]
	r := &files{
		write: resolved(f.write), pinned: f.pinned, tmp: f.tmp,
		exec: resolved(slices.Concat(f.exec, f.mapped)), // libraries are mapped as executable
	}
	for _, path := range unique(slices.Concat(f.read, f.exec, f.write, f.pinned)) {
		r.bind(m, path)
	}
	for _, device := range f.devices {
		if device == "/dev/ptmx" || device == "/dev/pts" {
			continue // it gets its own
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
	// Parents come first.
	slices.SortStableFunc(m.Binds, func(a, b launch.Bind) int { return bytes.Compare(a.Path, b.Path) })
	m.Binds = slices.CompactFunc(m.Binds, func(a, b launch.Bind) bool {
		return bytes.Equal(a.Path, b.Path)
	})
	return m
}

// bind lets the program see a path at its real place, with the rights of that place.
func (f *files) bind(m *launch.Mounts, path string) {
	target, err := filepath.EvalSymlinks(path)
	if (err != nil || target != path) && slices.Contains(f.pinned, path) {
		m.Binds = append(m.Binds, launch.Bind{Path: launch.Bytes(path), Pin: true, Link: true})
	}
	if err != nil {
		return // it does not exist, or is a dangling link
	}
	m.Binds = append(m.Binds, launch.Bind{
		Path: launch.Bytes(target), Write: anyWithin(f.write, target) && !anyWithin(f.pinned, target), Exec: anyWithin(f.exec, target),
		Pin: slices.Contains(f.pinned, target),
	})
	if target == path || !m.Minimal && !anyWithin(f.tmp, path) {
		return // the links exist in a full root, but not in its own temporary directories
	}
	for _, dir := range SystemDirs() {
		link, err := os.Readlink(dir)
		if err == nil && within(path, dir) {
			m.Links = append(m.Links, launch.Link{Path: launch.Bytes(dir), Target: launch.Bytes(link)})
			return
		}
	}
	// A second mount of the same files would lack the protection of their parts.
	m.Links = append(m.Links, launch.Link{Path: launch.Bytes(path), Target: launch.Bytes(target)})
}

// resolved returns the real paths, each once. The launcher follows no links, which may lead
// elsewhere by then. A path that does not exist here may exist in the sandbox.
func resolved(paths []string) []string {
	paths = slices.Clone(paths)
	for i, path := range paths {
		paths[i] = realPath(path)
	}
	return unique(paths)
}

// realPath returns the target of a path, or the path itself if it leads nowhere.
func realPath(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// placeOf returns a path with all links followed except the last.
func placeOf(path string) string {
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}

// anyWithin reports whether path is one of dirs or below one.
func anyWithin(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(path, dir) })
}

// unique returns the paths sorted, so that each comes after the directories above it.
func unique(paths []string) []string {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	return slices.Compact(paths)
}

func withoutWords(exec []string) []string {
	return slices.DeleteFunc(slices.Clone(exec), func(path string) bool {
		return path == ExecSystem || path == ExecWorkspace || path == ExecTmp || path == ExecHome
	})
}
