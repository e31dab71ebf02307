package interpreter

import (
	"encoding/json"
	"io"
	"os"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

// asker asks the plugin whether a part may be executed. A refusal ends the process.
type asker struct {
	mu      sync.Mutex // guards what follows, and what is written
	encoder *json.Encoder
	last    uint64
	waiting map[uint64]chan bool
}

func newAsker(to io.Writer) *asker {
	return &asker{encoder: json.NewEncoder(to), waiting: make(map[uint64]chan bool)}
}

// listen hands on the answers until there are no more: then nothing may run.
func (a *asker) listen(decoder *json.Decoder) {
	for {
		var said answer
		if decoder.Decode(&said) != nil || !said.Allowed {
			os.Exit(Refused)
		}
		a.mu.Lock()
		if reply := a.waiting[said.ID]; reply != nil {
			delete(a.waiting, said.ID)
			close(reply)
		}
		a.mu.Unlock()
	}
}

// mayRun returns when the part may be executed, and not otherwise.
func (a *asker) mayRun(e tool.Execution) {
	allowed := make(chan bool)
	a.mu.Lock()
	a.last++
	a.waiting[a.last] = allowed
	err := a.encoder.Encode(question{a.last, e})
	a.mu.Unlock()
	if err != nil {
		os.Exit(Refused)
	}
	<-allowed
}

// Program is what an interpreter executes.
type Program struct {
	// Tree is the syntax tree, in the typed JSON of mvdan.cc/sh.
	Tree json.RawMessage
	// Writable are absolute paths below which commands may put programs.
	Writable []string
	// Environment is that of the command.
	Environment []string
	// Pipes is a directory of the command's own for the pipes of process substitutions; ""
	// if it has none, and they fail.
	Pipes string
}

// Serve gives an interpreter the rest of its program ([Hand]), and answers its questions
// with mayRun, which may be called by several goroutines, until its end of the socket is
// closed. It returns the first refusal, nil if there was none.
func Serve(socket io.ReadWriter, rest []byte, mayRun func(tool.Execution) error) error {
	var (
		mu      sync.Mutex // guards refused and what is written
		refused error
		asking  sync.WaitGroup
	)
	encoder, decoder := json.NewEncoder(socket), json.NewDecoder(socket)
	_, _ = socket.Write(rest)              // if it has ended, it asks nothing
	slots := make(chan struct{}, maxAsked) // full: the interpreter waits
	for {
		var q question
		if decoder.Decode(&q) != nil {
			break
		}
		slots <- struct{}{}
		asking.Go(func() { // ends with the answer
			err := mayRun(q.Execution)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && refused == nil {
				refused = err
			}
			_ = encoder.Encode(answer{q.ID, err == nil && refused == nil}) // it may have ended
			<-slots
		})
	}
	asking.Wait()
	return refused
}

// maxAsked bounds the parts of one command that are asked about at a time.
const maxAsked = 32
