package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

const (
	// maxNumber is the longest text of a number, and maxExponent the largest
	// exponent: arithmetic on longer ones costs more than a call should.
	maxNumber   = 256
	maxExponent = 999
)

func (r *reader) number() (any, error) {
	start := r.pos
	if err := r.passNumber(); err != nil {
		return nil, err
	}
	return json.Number(r.text[start:r.pos]), nil
}

func (r *reader) passNumber() error {
	start := r.pos
	if r.text[r.pos] == '-' {
		r.pos++
	}
	switch {
	case r.pos < len(r.text) && r.text[r.pos] == '0':
		r.pos++
	case !r.digits():
		return r.expected("a digit")
	}
	if r.pos < len(r.text) && r.text[r.pos] == '.' {
		r.pos++
		if !r.digits() {
			return r.expected("a digit")
		}
	}
	if r.pos < len(r.text) && r.text[r.pos]|0x20 == 'e' {
		r.pos++
		if r.pos < len(r.text) && (r.text[r.pos] == '+' || r.text[r.pos] == '-') {
			r.pos++
		}
		exponent := r.pos
		if !r.digits() {
			return r.expected("a digit")
		}
		if n, err := strconv.Atoi(string(r.text[exponent:r.pos])); err != nil || n > maxExponent {
			return r.errorAt(exponent, fmt.Sprintf("an exponent larger than %d", maxExponent))
		}
		if _, err := strconv.ParseFloat(string(r.text[start:r.pos]), 64); err != nil {
			return r.errorAt(start, fmt.Sprintf("a number beyond %.2g, the largest that programs hold", math.MaxFloat64))
		}
	}
	if r.pos-start > maxNumber {
		return r.errorAt(start, fmt.Sprintf("a number of more than %d characters", maxNumber))
	}
	return nil
}

// digits passes digits and reports whether there was at least one.
func (r *reader) digits() bool {
	start := r.pos
	for r.pos < len(r.text) && isDigit(r.text[r.pos]) {
		r.pos++
	}
	return r.pos > start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
