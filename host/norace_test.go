//go:build !race

package main

// raced reports that the host and the plugin watchedHello watch themselves for data
// races.
const raced = false

// watchedHello is the binary of the plugin hello.
const watchedHello = "hello"
