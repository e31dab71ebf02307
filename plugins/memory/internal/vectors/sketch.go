package vectors

import (
	"math"
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
	for i, value := range v { // flip signs without unpredictable branches
		sign := uint32(bits.OnesCount64(uint64(i)*0x9e3779b97f4a7c15>>7)) << 31
		x[i%n] += math.Float32frombits(math.Float32bits(value) ^ sign)
	}
	for i := 0; i < n; i += 4 {
		q := x[i:][:4]
		q[0], q[1], q[2], q[3] = cross(q[0], q[1], q[2], q[3])
	}
	for half := 4; half < n/2; half *= 4 { // two steps of the transform at a time
		for i := 0; i < n; i += 4 * half {
			a, b, c, d := x[i:i+half], x[i+half:][:half], x[i+2*half:][:half], x[i+3*half:][:half]
			for j := range a {
				a[j], b[j], c[j], d[j] = cross(a[j], b[j], c[j], d[j])
			}
		}
	}
	for i := range n / 2 {
		x[i], x[i+n/2] = x[i]+x[i+n/2], x[i]-x[i+n/2]
	}
	var s sketch
	for i := range s {
		for j, value := range x[i*64:][:64] {
			s[i] |= uint64(^math.Float32bits(value)>>31) << j
		}
	}
	return s
}

// cross transforms four numbers.
func cross(a, b, c, d float32) (float32, float32, float32, float32) {
	ab, apart, cd, cpart := a+b, a-b, c+d, c-d
	return ab + cd, apart + cpart, ab - cd, apart - cpart
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
