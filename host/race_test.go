//go:build race

package main

// raced reports that the host and the plugin watchedHello run with the race detector.
const raced = true

// watchedHello is the binary of the plugin hello with the race detector.
const watchedHello = "hello-raced"
