package vectors

import (
	"math/bits"
	"slices"
)

// words is the number of 64-bit words of a sketch.
const words = 8

// sketch describes in 64 bytes roughly where a vector points: one bit for each of
// 512 directions, set if the vector points that way. The more bits two sketches
// share, the nearer their vectors are.
type sketch [words]uint64

// sketchOf returns the sketch of a vector. The directions are the rows of a
// Hadamard matrix with shuffled signs of the coordinates, so that a fast
// Walsh-Hadamard transform (n·log n additions) compares the vector with all of
// them. A vector of more than 512 dimensions is folded.
func sketchOf(v []float32) sketch {
	const n = words * 64
	var x [n]float32
	for i, value := range v {
		if bits.OnesCount64(uint64(i)*0x9e3779b97f4a7c15>>7)%2 == 1 {
			value = -value
		}
		x[i%n] += value
	}
	for half := 1; half < n; half *= 2 {
		for i := 0; i < n; i += 2 * half {
			a, b := x[i:i+half], x[i+half:][:half]
			for j := range a {
				a[j], b[j] = a[j]+b[j], a[j]-b[j]
			}
		}
	}
	var s sketch
	for i, value := range x {
		if value >= 0 {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// distance returns the number of bits in which two sketches differ.
func (s *sketch) distance(other *sketch) int {
	d := 0
	for i := range s {
		d += bits.OnesCount64(s[i] ^ other[i])
	}
	return d
}

// nearest returns the places of the n sketches nearest to s, in descending order of
// place. keep selects the sketches; nil means all.
func (s *sketch) nearest(all []sketch, n int, keep func(place int) bool) []int {
	const far = words*64 + 1 // distance of sketches that keep excludes
	distances := make([]uint16, len(all))
	var counts [far + 1]int
	for i := range all {
		d := far
		if keep == nil || keep(i) {
			d = s.distance(&all[i])
		}
		distances[i] = uint16(d)
		counts[d]++
	}
	limit, found := 0, counts[0]
	for limit < far-1 && found < n {
		limit++
		found += counts[limit]
	}
	room := n - (found - counts[limit]) // how many at the limit fit
	places := make([]int, 0, min(n, found))
	for i, d := range slices.Backward(distances) { // the newer ones first
		switch {
		case int(d) > limit, int(d) == limit && room == 0:
			continue
		case int(d) == limit:
			room--
		}
		places = append(places, i)
	}
	return places
}
