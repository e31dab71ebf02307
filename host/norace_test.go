//go:build !race

package main

// raced reports that the host under test watches itself for data races.
const raced = false
