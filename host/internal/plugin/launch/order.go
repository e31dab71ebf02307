package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Bounds of what crosses between host and launcher. The kernel takes no more
// than about 2 MiB of arguments and environment.
const (
	MaxOrder   = 4 << 20
	MaxNotices = 64 << 10
)

// Bytes is a string that may not be UTF-8, which JSON would replace.
type Bytes []byte

// Order is what the host tells a launcher. What is not ordered is not done; the
// zero value of each field but Path, Dir and Host means so. The names of layers
// are those of package sandbox.
type Order struct {
	Host   int     `json:"host"` // the host's pid
	Path   Bytes   `json:"path"` // argv[0]
	Args   []Bytes `json:"args,omitempty"`
	Env    []Bytes `json:"env,omitempty"`
	Dir    Bytes   `json:"dir"`
	Limits []Limit `json:"limits,omitempty"`
	Script bool    `json:"script,omitempty"` // the program begins with "#!"
	// Try makes the launcher end instead of becoming the program.
	Try bool `json:"try,omitempty"`

	// Loopback brings the loopback address of the network namespace up.
	Loopback bool    `json:"loopback,omitempty"`
	Mounts   *Mounts `json:"mounts,omitempty"`
	// Reach are paths that must be reached in the end; a layer that keeps the
	// program from them fails.
	Reach []Bytes `json:"reach,omitempty"`
	// Writable are directories that its user should be able to write.
	Writable []Bytes   `json:"writable,omitempty"`
	User     *User     `json:"user,omitempty"`
	NoCaps   bool      `json:"no_caps,omitempty"`
	Landlock *Landlock `json:"landlock,omitempty"`
	Seccomp  *Filter   `json:"seccomp,omitempty"`
}

// Limit is one resource limit as setrlimit(2) takes it.
type Limit struct {
	Name     string `json:"name"`
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// Mounts is what the program sees of the file system.
type Mounts struct {
	// Minimal gives it a root with nothing but what is listed here; otherwise it
	// sees everything, and can change nothing but what is listed.
	Minimal bool `json:"minimal,omitempty"`
	// Binds are what is there. Those that lie in others come after them.
	Binds []Bind `json:"binds,omitempty"`
	// Links are symbolic links that a minimal root has.
	Links []Link `json:"links,omitempty"`
	// Hidden are directories that are empty but for what is bound there.
	Hidden []Bytes `json:"hidden,omitempty"`
	// Masked are files and directories, sorted, in whose place there is an empty one that
	// nobody may read, and that cannot be renamed, nor any directory above them, up to the
	// bind that they lie in. What is not there is left out.
	Masked []Bytes `json:"masked,omitempty"`
	// Tmp are directories that share one memory file system of TmpSize bytes.
	Tmp     []Bytes `json:"tmp,omitempty"`
	TmpSize uint64  `json:"tmp_size,omitempty"`
	TmpExec bool    `json:"tmp_exec,omitempty"`
	// Proc gives it a /proc of its own processes; otherwise it has none, or, if
	// HostProc is set, the host's.
	Proc     bool `json:"proc,omitempty"`
	HostProc bool `json:"host_proc,omitempty"`
	// Pty gives it pseudo-terminals of its own.
	Pty bool `json:"pty,omitempty"`
}

// Bind is a path of the host that the program sees at the same path. No symbolic
// link is followed on the way.
type Bind struct {
	Path  Bytes `json:"path"`
	Write bool  `json:"write,omitempty"`
	Exec  bool  `json:"exec,omitempty"`
	Dev   bool  `json:"dev,omitempty"` // devices there work
	// Pin makes it impossible to rename the path or any directory above it, up
	// to the bind that it lies in.
	Pin bool `json:"pin,omitempty"`
	// Link says that the path is a symbolic link, which stays one.
	Link bool `json:"link,omitempty"`
}

// Link is a symbolic link.
type Link struct {
	Path   Bytes `json:"path"`
	Target Bytes `json:"target"`
}

// User is who the program runs as.
type User struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Groups says that supplementary groups can be dropped.
	Groups bool `json:"groups,omitempty"`
}

// Landlock are the access rules for files, those for the program included.
type Landlock struct {
	Read    []Bytes `json:"read,omitempty"`
	Exec    []Bytes `json:"exec,omitempty"`
	Write   []Bytes `json:"write,omitempty"`
	Devices []Bytes `json:"devices,omitempty"`
}

// Filter says which system calls the program may make. Those that serve to leave a
// sandbox, or that reach deep into the kernel, are refused in any case.
type Filter struct {
	// Sockets are the sockets that it may have.
	Sockets Sockets `json:"sockets"`
	// IPC allows System V and POSIX queues, semaphores and memory.
	IPC bool `json:"ipc,omitempty"`
	// Memfd allows files that are in memory only, which no access rule keeps from
	// being executed.
	Memfd bool `json:"memfd,omitempty"`
	// Metadata allows changing modes, owners and extended attributes by names, which
	// no access rule guards. Those of open files can be changed in any case.
	Metadata bool `json:"metadata,omitempty"`
	// SharedMemory allows memory without a file that processes share.
	SharedMemory bool `json:"shared_memory,omitempty"`
}

// Sockets are the kinds of sockets that a program may have.
type Sockets string

// The kinds of sockets.
const (
	// SocketsListen: unix sockets to listen on; it cannot connect.
	SocketsListen Sockets = "listen"
	// SocketsNetwork: unix sockets, TCP and UDP, and netlink to look at the
	// network; no raw ones.
	SocketsNetwork Sockets = "network"
)

// Encode returns the order as the launcher reads it.
func (o *Order) Encode() ([]byte, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxOrder {
		return nil, fmt.Errorf("arguments and environment take %d bytes, more than a program can get", len(b))
	}
	return b, nil
}

// decodeOrder reads one order, which is all that r holds.
func decodeOrder(r io.Reader) (*Order, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxOrder+1))
	if err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	if len(b) > MaxOrder {
		return nil, fmt.Errorf("read orders: more than %d bytes", MaxOrder)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var o Order
	if err := dec.Decode(&o); err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read orders: something follows the order")
	}
	if o.Host <= 0 || len(o.Path) == 0 || len(o.Dir) == 0 || o.Dir[0] != '/' {
		return nil, errors.New("read orders: host, path or directory is missing")
	}
	return &o, nil
}

// Notice is what a launcher tells the host: what it has done before it executes
// the program, a failure instead or afterwards.
type Notice struct {
	Done    *Details   `json:"done,omitempty"`
	Failure *StepError `json:"failure,omitempty"`
}

// Details are what the host cannot know of what was done.
type Details struct {
	// Landlock is the kernel's ABI, 0 if it was not ordered.
	Landlock int `json:"landlock,omitempty"`
	// ReadOnly are those of [Order.Writable] that its user may not write.
	ReadOnly []Bytes `json:"read_only,omitempty"`
	// NoLoopback says why the loopback address could not be brought up.
	NoLoopback string `json:"no_loopback,omitempty"`
}

// StepError is why a launcher could not become the program.
type StepError struct {
	Text  string        `json:"text"`
	Layer string        `json:"layer,omitempty"` // the layer that cannot be had here
	Errno syscall.Errno `json:"errno,omitempty"`
	Exec  bool          `json:"exec,omitempty"`  // execve(2) itself refused
	Moved bool          `json:"moved,omitempty"` // a path was replaced meanwhile; another start may succeed
}

// Error implements error.
func (f *StepError) Error() string { return f.Text }

// Unwrap returns the error number, if there is one.
func (f *StepError) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

func encode(n Notice) ([]byte, error) {
	b, err := json.Marshal(n)
	return append(b, '\n'), err
}

func send(w io.Writer, n Notice) error {
	b, err := encode(n)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func stringsOf[T ~[]byte](in []T) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = string(s)
	}
	return out
}
