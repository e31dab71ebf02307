// Command du is another du: what it does is its last argument.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	switch os.Args[len(os.Args)-1] {
	case "hang":
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		<-hangup // never sent
	case "partial":
		fmt.Print("8\tpartial\x004\tpartial/a\x00")
		fmt.Fprintln(os.Stderr, "du: cannot read directory 'partial/b': Permission denied\ndu: and so on")
	case "nothing":
		fmt.Fprintln(os.Stderr, "du: invalid option -- '0'")
	case "nonsense":
		fmt.Print("a lot\tnonsense\x00")
	case "peek":
		_, own := os.ReadFile("peek")
		_, others := os.ReadDir(".")
		program := exec.Command("/usr/bin/true")
		program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stderr, os.Stderr // not /dev/null, which it may not open
		fmt.Print("4\tpeek\x00")
		fmt.Fprintf(os.Stderr, "own file: %t, others: %t, other programs: %t", own == nil, others == nil, program.Run() == nil)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	os.Exit(1)
}
