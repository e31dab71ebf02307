//go:build !linux

package httpapi_test

const programVar = "HTTPAPI_TEST_PROGRAM"

func programs() map[string]func(args []string) int { return nil }
