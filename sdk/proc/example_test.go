package proc_test

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

func ExampleRun() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := proc.Run(ctx, proc.Command{
		Path:   "sh",
		Args:   []string{"-c", "sleep 1000 & tr a-z A-Z; exit 3"},
		Stdin:  []byte("hello\n"),
		Limits: proc.Limits{FileSize: tool.MiB, CPUTime: 10 * time.Second},
		Grace:  time.Second,
	})
	if err != nil {
		panic(err) // not started
	}
	fmt.Printf("%sexit code %d, timed out %t, left something %t\n", result.Stdout, result.ExitCode, result.TimedOut, result.Background)

	_, err = proc.Run(ctx, proc.Command{Path: "no-such-program"})
	fmt.Println(err)
	// Output:
	// HELLO
	// exit code 3, timed out false, left something true
	// not_found: program not found: no-such-program
}

func ExampleStart() {
	p, err := proc.Start(context.Background(), proc.Command{
		Path:      "cat",
		OpenStdin: true,
		Output:    func(s proc.Stream, data []byte) { fmt.Printf("%v: %s", s, data) },
	})
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(p.Stdin, "hello")
	if err := p.Stdin.Close(); err != nil {
		panic(err)
	}
	result, err := p.Wait()
	fmt.Println(result.ExitCode, err)
	// Output:
	// stdout: hello
	// 0 <nil>
}
