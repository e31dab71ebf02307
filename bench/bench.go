// Package bench compares the built programs with others, side by side in one run: `make bench`.
// RESULTS.md has measured figures. The package contains only benchmarks.
package bench
