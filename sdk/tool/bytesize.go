package tool

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes.
type ByteSize int64

// Binary multiples.
const (
	KiB ByteSize = 1 << 10
	MiB ByteSize = 1 << 20
	GiB ByteSize = 1 << 30
	TiB ByteSize = 1 << 40
)

var byteUnits = []struct {
	suffix string
	size   ByteSize
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

// String returns the size in the largest unit that divides it, such as "64MiB" or
// "1000B".
func (b ByteSize) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.suffix
		}
	}
	return "0B"
}

// ParseByteSize parses a whole number followed by B, KiB, MiB, GiB or TiB, such as
// "64MiB". It refuses decimal units, which are nearly always a mistake for the
// binary ones.
func ParseByteSize(s string) (ByteSize, error) {
	bad := fmt.Errorf("%q is not a size, expected a whole number with B, KiB, MiB, GiB or TiB, such as \"64MiB\"", s)
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 {
			return 0, bad
		}
		if n > math.MaxInt64/int64(u.size) {
			return 0, fmt.Errorf("size %q is larger than any machine has", s)
		}
		return ByteSize(n) * u.size, nil
	}
	return 0, bad
}
