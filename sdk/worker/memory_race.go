//go:build race

package worker

// Memory is no limit: the race detector maps more memory than any useful one.
const Memory = 0
