//go:build race

package main

// raced says that the race detector is on, which takes more memory than a plugin may.
const raced = true
