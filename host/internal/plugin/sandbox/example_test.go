package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

func ExampleLauncher() {
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer launcher.Close()

	binary, err := os.Open("/bin/sh")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer binary.Close()
	proc, err := launcher.Launch(context.Background(), sandbox.Profile{
		Binary:      binary,
		Path:        "/bin/sh",
		Args:        []string{"-c", `echo "$GREETING"; ulimit -n; sleep 1000 & exit 3`},
		Env:         []string{"GREETING=hello", "PATH=/usr/bin:/bin"},
		Limits:      sandbox.Limits{OpenFiles: 64, FileSize: tool.MiB},
		Confinement: sandbox.Confinement{Exec: []string{sandbox.ExecSystem}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := io.ReadAll(proc.Stdout) // ends although sleep holds it open
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(out))
	exit := proc.Exit()
	fmt.Println(exit.State)
	// Output:
	// hello
	// 64
	// exit status 3
}
