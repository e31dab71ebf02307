//go:build race

package page

// childMemory is no limit: the race detector maps more memory than any useful one.
const childMemory = 0
