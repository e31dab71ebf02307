//go:build !linux

// Package interpreter executes commands by their syntax trees on Linux only: elsewhere
// every command is a text that a person approves.
package interpreter

// Entered reports whether this process was started as an interpreter.
func Entered() bool { return false }

// Main is the whole life of an interpreter.
func Main() int { return 1 }
