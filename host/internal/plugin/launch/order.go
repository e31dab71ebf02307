package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Bounds of the messages between host and launcher, in bytes. The kernel accepts about
// 2 MiB of arguments and environment.
const (
	MaxOrder   = 4 << 20
	MaxNotices = 64 << 10
)

// Bytes is a string that may not be UTF-8, which JSON would replace.
type Bytes []byte

// Order is the order of a host to a launcher. The launcher skips every step whose field
// is zero; Path, Dir and Host are required. Package sandbox defines the names of the
// layers.
type Order struct {
	Host   int     `json:"host"` // the host's pid
	Path   Bytes   `json:"path"` // argv[0]
	Args   []Bytes `json:"args,omitempty"`
	Env    []Bytes `json:"env,omitempty"`
	Dir    Bytes   `json:"dir"`
	Limits []Limit `json:"limits,omitempty"`
	Script bool    `json:"script,omitempty"` // the program begins with "#!"
	// Try makes the launcher exit instead of becoming the program.
	Try bool `json:"try,omitempty"`

	// Loopback brings up the loopback address of the network namespace.
	Loopback bool `json:"loopback,omitempty"`
	// Proxy is the port of 127.0.0.1 in the network namespace on which the launcher listens for
	// the host. It sends the socket on ProxyFD; 0 means none.
	Proxy  int     `json:"proxy,omitempty"`
	Mounts *Mounts `json:"mounts,omitempty"`
	// Reach are paths that the program must be able to reach; a layer that prevents it
	// fails.
	Reach []Bytes `json:"reach,omitempty"`
	// Writable are directories that the program's user should be able to write.
	Writable []Bytes   `json:"writable,omitempty"`
	User     *User     `json:"user,omitempty"`
	NoCaps   bool      `json:"no_caps,omitempty"`
	Landlock *Landlock `json:"landlock,omitempty"`
	Seccomp  *Filter   `json:"seccomp,omitempty"`
}

// Limit is one resource limit of setrlimit(2).
type Limit struct {
	Name     string `json:"name"`
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// Mounts are the parts of the file system that the program sees.
type Mounts struct {
	// Minimal gives it a root that holds only the listed paths. Without it, the program
	// sees everything and can change only the listed paths.
	Minimal bool `json:"minimal,omitempty"`
	// Binds are the visible paths, each after the paths that contain it.
	Binds []Bind `json:"binds,omitempty"`
	// Links are the symbolic links of a minimal root.
	Links []Link `json:"links,omitempty"`
	// Hidden are directories that are empty except for the binds in them.
	Hidden []Bytes `json:"hidden,omitempty"`
	// Masked are files and directories, sorted. Each is replaced by an empty one that cannot be
	// read. Neither it nor the directories above it, up to the bind that contains it, can be
	// renamed. Missing paths are skipped.
	Masked []Bytes `json:"masked,omitempty"`
	// Tmp are directories that share one memory file system of TmpSize bytes.
	Tmp     []Bytes `json:"tmp,omitempty"`
	TmpSize uint64  `json:"tmp_size,omitempty"`
	TmpExec bool    `json:"tmp_exec,omitempty"`
	// Proc gives the program a /proc with its own processes. Without it, the program has no
	// /proc, or the host's if HostProc is set.
	Proc     bool `json:"proc,omitempty"`
	HostProc bool `json:"host_proc,omitempty"`
	// Pty gives it its own pseudo-terminals.
	Pty bool `json:"pty,omitempty"`
}

// Bind is a path of the host that the program sees at the same path. The launcher does
// not follow symbolic links.
type Bind struct {
	Path  Bytes `json:"path"`
	Write bool  `json:"write,omitempty"`
	Exec  bool  `json:"exec,omitempty"`
	Dev   bool  `json:"dev,omitempty"` // devices there work
	// Pin prevents renaming the path and the directories above it, up to the bind that
	// contains it.
	Pin bool `json:"pin,omitempty"`
	// Link is set if the path is a symbolic link, which stays one.
	Link bool `json:"link,omitempty"`
}

// Link is a symbolic link.
type Link struct {
	Path   Bytes `json:"path"`
	Target Bytes `json:"target"`
}

// User is the user that the program runs as.
type User struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Groups is set if supplementary groups can be dropped.
	Groups bool `json:"groups,omitempty"`
}

// Landlock are the access rules for files, the program's own file included.
type Landlock struct {
	Read    []Bytes `json:"read,omitempty"`
	Exec    []Bytes `json:"exec,omitempty"`
	Write   []Bytes `json:"write,omitempty"`
	Devices []Bytes `json:"devices,omitempty"`
}

// Filter selects the system calls that the program may make. Calls that can leave a
// sandbox, or that reach deep into the kernel, are always refused.
type Filter struct {
	// Sockets are the kinds of sockets that it may have.
	Sockets Sockets `json:"sockets"`
	// IPC allows System V and POSIX queues, semaphores and memory.
	IPC bool `json:"ipc,omitempty"`
	// Memfd allows files in memory. No access rule prevents their execution.
	Memfd bool `json:"memfd,omitempty"`
	// Metadata allows changing modes, owners and extended attributes by name, which no
	// access rule restricts. Those of open files can always be changed.
	Metadata bool `json:"metadata,omitempty"`
	// SharedMemory allows shared memory without a file.
	SharedMemory bool `json:"shared_memory,omitempty"`
}

// Sockets are the kinds of sockets that a program may have.
type Sockets string

// The kinds of sockets.
const (
	// SocketsListen: unix sockets that listen; the program cannot connect.
	SocketsListen Sockets = "listen"
	// SocketsNetwork: unix sockets, TCP, UDP, and netlink to read the state of the
	// network; no raw sockets.
	SocketsNetwork Sockets = "network"
)

// Encode returns the order in the form that the launcher reads.
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

// decodeOrder reads one order, the only content of r.
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

// Notice is a message of a launcher to the host: Done before it executes the program, or
// Failure, which may also follow Done.
type Notice struct {
	Done    *Details   `json:"done,omitempty"`
	Failure *StepError `json:"failure,omitempty"`
}

// Details are the results that the host cannot know.
type Details struct {
	// Landlock is the kernel's ABI, 0 if it was not ordered.
	Landlock int `json:"landlock,omitempty"`
	// ReadOnly are the directories of [Order.Writable] that the user cannot write.
	ReadOnly []Bytes `json:"read_only,omitempty"`
	// NoLoopback is the reason why the loopback address could not be brought up.
	NoLoopback string `json:"no_loopback,omitempty"`
}

// StepError is the reason why a launcher could not become the program.
type StepError struct {
	Text  string        `json:"text"`
	Layer string        `json:"layer,omitempty"` // the layer that is not available
	Errno syscall.Errno `json:"errno,omitempty"`
	Exec  bool          `json:"exec,omitempty"`  // execve(2) itself refused
	Moved bool          `json:"moved,omitempty"` // a path was replaced; another start may succeed
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
