// Package bench compares the built programs with what they are measured
// against, side by side in one run: `make bench`. Figures that were measured
// are in RESULTS.md. It contains benchmarks only.
package bench
