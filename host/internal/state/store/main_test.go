package store

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// holdDir in the environment makes this binary a process that holds the lock
// of that directory until it is killed.
const holdDir = "TOOLHOST_STORE_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		lock, err := Lock(dir)
		fmt.Fprintln(os.Stdout, err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = lock.Close() // the process ends
		return
	}
	if dir := os.Getenv(limitDir); dir != "" {
		os.Exit(limited(dir))
	}
	goleak.VerifyTestMain(m)
}

// hold starts a process that holds the lock of dir.
func hold(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // it ends with this process
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead
		_ = cmd.Wait()         // killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "<nil>\n" {
		t.Fatalf("the process that holds the lock says %q, %v", line, err)
	}
	return cmd
}
