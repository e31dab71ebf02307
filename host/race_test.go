//go:build race

package main

// raced reports that the host and the plugin watchedHello watch themselves for data
// races.
const raced = true

// watchedHello is the binary of the plugin hello that watches itself.
const watchedHello = "hello-raced"
