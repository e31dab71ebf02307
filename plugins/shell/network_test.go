package main

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/proc"
)

// TestMissedNetwork checks outputs of programs that needed a network, and of others.
func TestMissedNetwork(t *testing.T) {
	for text, want := range map[string]bool{
		"curl: (6) Could not resolve host: example.com":                                                                                            true,
		"fatal: unable to access 'https://example.com/': Could not resolve host: example.com":                                                      true,
		"go: example.com/x@v1: Get \"https://proxy/\": dial tcp: lookup proxy on 1.1.1.1:53: dial udp 1.1.1.1:53: connect: network is unreachable": true,
		"npm error code EAI_AGAIN\nnpm error syscall getaddrinfo":                                                                                  true,
		"Temporary failure in name resolution\n" + strings.Repeat("x\n", 1000):                                                                     true,
		"Temporary failure in name resolution\n" + strings.Repeat("x\n", 100_000):                                                                  false,
		"dial tcp 127.0.0.1:8080: connect: connection refused":                                                                                     false,
		"cat: a: No such file or directory":                                                                                                        false,
	} {
		for _, o := range []outcome{{Result: proc.Result{Stderr: proc.Capture{Head: []byte(text)}}}, {Result: proc.Result{Stdout: proc.Capture{Head: []byte("a"), Tail: []byte(text)}}}} {
			if got := o.missedNetwork(); got != want {
				t.Errorf("missedNetwork of %.60q = %t", text, got)
			}
		}
	}
}
