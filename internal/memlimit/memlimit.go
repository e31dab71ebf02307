// Package memlimit says how a Go program gets along with a limit on its memory by
// RLIMIT_DATA: how little will do, and when its garbage collector has to work
// harder.
package memlimit

// Min is the least memory, in bytes, with which a Go plugin with TLS starts
// reliably (measured: about 160 MiB).
const Min = 192 << 20

// reserve is the approximate memory that the runtime maps for itself and its threads.
const reserve = 64 << 20

// Heap returns GOMEMLIMIT, in bytes, for a program with the given memory, at least [Min]. It
// subtracts the memory that the collector does not count: the reserve, and memory that is free
// or was returned but is still mapped.
func Heap(memory int64) int64 {
	return (memory - reserve) / 10 * 8
}
