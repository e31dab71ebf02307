//go:build race

package sandbox

// raceDetector makes programs start ten times as slowly: with it, attacks are tried
// at each level, and what stops them is taken from SECURITY.md.
const raceDetector = true
