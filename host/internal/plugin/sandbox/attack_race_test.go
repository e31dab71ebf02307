//go:build race

package sandbox

// raceDetector makes programs start ten times as slowly. With it, some attacks are tried, and
// what stops them is read from SECURITY.md.
const raceDetector = true
