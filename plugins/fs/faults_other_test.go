//go:build !linux

package main

import "errors"

func faultyProcess(string, string) error {
	return errors.New("only Linux lets a process decide about the system calls of another")
}
