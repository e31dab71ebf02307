package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/toolhost/toolhost/internal/output"
	"github.com/toolhost/toolhost/sdk/tool"
)

// chunk is how much of an output is read at once.
const chunk = 128 << 10

// pipeSize is how much unread output a pipe holds.
const pipeSize = 256 << 10

// streams are a command's standard input, output and error.
type streams struct {
	theirs  [3]*os.File // the command's ends
	lent    bool        // they belong to the caller
	stdin   *stdin      // nil if there is no input
	outputs []*stream

	copying sync.WaitGroup // one for each output

	mu   sync.Mutex // held while sink runs
	sink func(Stream, []byte)
}

// stream is one output.
type stream struct {
	name Stream
	from *output.Reader
	to   *Recorder
}

// openStreams creates the pipes that the command needs.
func openStreams(c *Command) (*streams, error) {
	s := &streams{sink: c.Output}
	err := s.open(c)
	if err == nil {
		return s, nil
	}
	s.closeTheirs()
	s.closeOurs()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return nil, tool.Errorf(tool.ResourceExhausted, "the plugin has too many open files to start a command").
			WithHint("run fewer commands at a time").WithCause(err)
	}
	return nil, fmt.Errorf("connect the command: %w", err)
}

func (s *streams) open(c *Command) (err error) {
	if c.Terminal != nil {
		s.theirs, s.lent = [3]*os.File{c.Terminal, c.Terminal, c.Terminal}, true
		return nil
	}
	if len(c.Stdin) > 0 || c.OpenStdin {
		s.stdin = &stdin{}
		s.theirs[0], s.stdin.file, err = os.Pipe()
	} else {
		s.theirs[0], err = os.Open(os.DevNull)
	}
	if err != nil {
		return err
	}
	if s.theirs[1], err = s.output(Stdout, c.MaxOutput); err != nil {
		return err
	}
	if c.Merge {
		s.theirs[2] = s.theirs[1]
		return nil
	}
	s.theirs[2], err = s.output(Stderr, c.MaxOutput)
	return err
}

// output adds an output and returns the command's end of it.
func (s *streams) output(name Stream, budget tool.ByteSize) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	growPipe(r)
	s.outputs = append(s.outputs, &stream{name, output.NewReader(r), NewRecorder(budget)})
	return w, nil
}

// closeTheirs closes the command's ends. Some may be nil.
func (s *streams) closeTheirs() {
	if s.lent {
		return
	}
	for _, f := range s.theirs {
		_ = f.Close() // merged outputs are closed twice; nothing is buffered
	}
}

func (s *streams) closeOurs() {
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
	for _, out := range s.outputs {
		_ = out.from.Close() // nothing is buffered
	}
}

// start writes the input and reads the outputs until finish.
func (s *streams) start(c *Command) {
	if s.stdin != nil {
		s.stdin.mu.Lock()
		s.copying.Go(func() { // ends when all is written, or with finish
			defer s.stdin.mu.Unlock()
			// A command need not read its input.
			_, _ = s.stdin.file.Write(c.Stdin)
			if !c.OpenStdin {
				_ = s.stdin.Close()
			}
		})
	}
	for _, out := range s.outputs {
		s.copying.Go(func() { s.copy(out) }) // ends with the output, or with finish
	}
}

func (s *streams) copy(out *stream) {
	buffer := make([]byte, chunk)
	for {
		n, err := out.from.Read(buffer)
		if n > 0 {
			_, _ = out.to.Write(buffer[:n]) // never fails
			s.pass(out.name, buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

func (s *streams) pass(name Stream, data []byte) {
	if s.sink == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink(name, data)
}

// finish reads the rest of the outputs and closes them.
func (s *streams) finish() {
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
	for _, out := range s.outputs {
		out.from.End()
	}
	s.copying.Wait()
	s.closeOurs()
}

// capture returns the recorded output, after finish.
func (s *streams) capture(name Stream) Capture {
	for _, out := range s.outputs {
		if out.name == name {
			return out.to.Capture()
		}
	}
	return Capture{}
}

// stdin is the plugin's end of a command's standard input.
type stdin struct {
	mu   sync.Mutex // held during a write
	file *os.File
}

var _ io.WriteCloser = (*stdin)(nil)

func (s *stdin) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Write(b)
}

// Close may be called repeatedly, and during a write.
func (s *stdin) Close() error {
	if err := s.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
