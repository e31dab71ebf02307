package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/toolhost/toolhost/sdk/tool"
)

// fileFD is the descriptor of [Job.File] in the process.
const fileFD = 3

// Input is the input of a function.
type Input struct {
	Request json.RawMessage
	Body    []byte
	File    *os.File // nil if the job has none
}

// Function answers one job. Its answer becomes JSON.
type Function func(in Input) (answer any, err error)

// Serve calls a function and exits, if [Run] started the process for that. If not, it returns.
// A program that uses [Run] must call it first.
func Serve(functions map[string]Function) {
	if len(os.Args) != 2 || functions[os.Args[1]] == nil {
		return
	}
	debug.SetGCPercent(200)
	if err := serve(functions[os.Args[1]], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(run Function, in io.Reader, out io.Writer) error {
	all, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	first, body, _ := bytes.Cut(all, []byte("\n"))
	input := Input{Body: body}
	h := head{Request: &input.Request}
	if err := json.Unmarshal(first, &h); err != nil {
		return err
	}
	if h.File {
		input.File = os.NewFile(fileFD, "input")
	}
	var r reply
	if r.Answer, err = run(input); err != nil {
		r.Error = tool.AsError(err)
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // escapes make the text up to six times as long
	return encoder.Encode(r)
}
