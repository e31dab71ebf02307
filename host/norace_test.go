//go:build !race

package main

// raced reports that the host and the plugin watchedHello run with the race detector.
const raced = false

// watchedHello is the binary of the plugin hello.
const watchedHello = "hello"
