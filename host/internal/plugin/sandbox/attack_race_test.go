//go:build race

package sandbox

// raceDetector makes programs start ten times as slowly: with it, some attacks are
// tried, and what stops them is taken from SECURITY.md.
const raceDetector = true
