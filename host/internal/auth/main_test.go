package auth_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

const programVar = "AUTH_TEST_PROGRAM"

func TestMain(m *testing.M) {
	name := os.Getenv(programVar)
	if name == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := programs()[name](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}
