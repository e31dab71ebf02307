package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Bounds of what crosses between host and launcher. The kernel takes no more
// than about 2 MiB of arguments and environment.
const (
	maxOrder   = 4 << 20
	maxNotices = 64 << 10
)

// order is what the host tells a launcher. Strings travel as bytes, because
// JSON would replace what is not UTF-8.
type order struct {
	Host   int      `json:"host"` // the host's pid
	Path   []byte   `json:"path"`
	Args   [][]byte `json:"args,omitempty"`
	Env    [][]byte `json:"env,omitempty"`
	Dir    []byte   `json:"dir"`
	Limits Limits   `json:"limits"`
	Script bool     `json:"script,omitempty"` // the binary begins with "#!"
}

func newOrder(p *Profile) *order {
	dir := p.Dir
	if dir == "" {
		dir = "/"
	}
	return &order{
		Host:   os.Getpid(),
		Path:   []byte(p.Path),
		Args:   bytesOf(p.Args),
		Env:    bytesOf(p.Env),
		Dir:    []byte(dir),
		Limits: p.Limits,
		Script: isScript(p.Binary),
	}
}

func (o *order) encode() ([]byte, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if len(b) > maxOrder {
		return nil, fmt.Errorf("arguments and environment take %d bytes, more than a program can get", len(b))
	}
	return b, nil
}

// decodeOrder reads one order, which is all that r holds.
func decodeOrder(r io.Reader) (*order, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxOrder+1))
	if err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	if len(b) > maxOrder {
		return nil, fmt.Errorf("read orders: more than %d bytes", maxOrder)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var o order
	if err := dec.Decode(&o); err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read orders: something follows the order")
	}
	if o.Host <= 0 || len(o.Path) == 0 || len(o.Dir) == 0 || o.Dir[0] != '/' {
		return nil, errors.New("read orders: host, path or directory is missing")
	}
	if err := o.Limits.check(); err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	return &o, nil
}

// notice is what a launcher tells the host: a report before it executes the
// program, a failure instead or afterwards.
type notice struct {
	Report  *Report  `json:"report,omitempty"`
	Failure *failure `json:"failure,omitempty"`
}

// failure is why a launcher could not become the program.
type failure struct {
	Text  string        `json:"text"`
	Errno syscall.Errno `json:"errno,omitempty"`
	Exec  bool          `json:"exec,omitempty"` // execve(2) itself refused
}

func (f *failure) Error() string { return f.Text }

func (f *failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

func encode(n notice) ([]byte, error) {
	b, err := json.Marshal(n)
	return append(b, '\n'), err
}

func send(w io.Writer, n notice) error {
	b, err := encode(n)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// errNoReport means that the launcher ended before it said anything.
var errNoReport = errors.New("the launcher ended before it reported")

// talk is the host's side of the conversation with one launcher.
type talk struct{ order, report *os.File }

// run sends the order and waits until the program has been executed: then the
// launcher's end of the report closes by itself.
func (t *talk) run(order []byte) (Report, error) {
	// A launcher that refuses or dies before it has read all of the order says
	// more in its notice than the write's error does.
	_, writeErr := t.order.Write(order)
	closeAll(t.order)

	dec := json.NewDecoder(io.LimitReader(t.report, maxNotices))
	var first, second notice
	if err := dec.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return Report{}, errNoReport
		}
		return Report{}, fmt.Errorf("read the launcher's report: %w", err)
	}
	switch {
	case first.Failure != nil:
		return Report{}, first.Failure
	case first.Report == nil:
		return Report{}, errors.New("the launcher's report is empty")
	case writeErr != nil:
		return Report{}, fmt.Errorf("send orders: %w", writeErr)
	}
	err := dec.Decode(&second)
	switch {
	case errors.Is(err, io.EOF):
		return *first.Report, nil
	case err != nil:
		return Report{}, fmt.Errorf("read the launcher's report: %w", err)
	case second.Failure != nil:
		return Report{}, second.Failure
	default:
		return Report{}, errors.New("the launcher reported twice")
	}
}

func (t *talk) close() {
	closeAll(t.order, t.report)
}

func bytesOf(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func stringsOf(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}
