//go:build race

package page

// childMemory is no bound under the race detector, which maps more than any.
const childMemory = 0
