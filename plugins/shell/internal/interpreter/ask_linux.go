package interpreter

import (
	"encoding/json"
	"io"
	"os"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

// asker asks the plugin whether a part of the command may be executed. A refusal
// ends the process.
type asker struct {
	mu      sync.Mutex // guards everything below, and writing
	encoder *json.Encoder
	last    uint64
	waiting map[uint64]chan bool
}

func newAsker(to io.Writer) *asker {
	return &asker{encoder: json.NewEncoder(to), waiting: make(map[uint64]chan bool)}
}

// listen passes on answers. When there are no more, it ends the process, because
// nothing may be executed any more.
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

// mayRun returns when the part may be executed. If it may not, mayRun does not
// return.
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

// Program is a command to execute.
type Program struct {
	// Tree is the syntax tree in the typed JSON of mvdan.cc/sh.
	Tree json.RawMessage
	// Writable are absolute paths below which commands can place programs.
	Writable []string
	// Environment is the environment of the command.
	Environment []string
	// Pipes is a directory for the pipes of the command's process substitutions. If
	// it is "", they fail.
	Pipes string
}

// Serve sends an interpreter the rest of its program ([Hand]) and answers its
// questions with mayRun until the interpreter closes its end of the socket. mayRun
// must be safe for concurrent use. Serve returns the first refusal, nil if there
// was none.
func Serve(socket io.ReadWriter, rest []byte, mayRun func(tool.Execution) error) error {
	var (
		mu      sync.Mutex // guards refused and what is written
		refused error
		asking  sync.WaitGroup
	)
	encoder, decoder := json.NewEncoder(socket), json.NewDecoder(socket)
	_, _ = socket.Write(rest)              // if this fails, the interpreter has ended
	slots := make(chan struct{}, maxAsked) // the interpreter waits while it is full
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
			_ = encoder.Encode(answer{q.ID, err == nil && refused == nil}) // the interpreter may have ended
			<-slots
		})
	}
	asking.Wait()
	return refused
}

// maxAsked bounds the concurrent questions of one command.
const maxAsked = 32
