package config

import (
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration // -1: an error
	}{
		{"0s", 0},
		{"90s", 90 * time.Second},
		{"1h30m", 90 * time.Minute},
		{"0d", 0},
		{"1d", 24 * time.Hour},
		{"90d", 90 * 24 * time.Hour},
		{"1d12h", 36 * time.Hour},
		{"2d0.5s", 48*time.Hour + 500*time.Millisecond},
		{"65535d", 65535 * 24 * time.Hour},
		{"65536d", -1},
		{"99999999999999999999d", -1},
		{"65535d2562047h", -1}, // together more than fits
		{"d", -1},
		{"-1d", -1},
		{"+1d", -1},
		{"1.5d", -1},
		{"1d-2h", -1},
		{"1d+2h", -1},
		{"1d2", -1},
		{"1d2d", -1},
		{"12h1d", -1},
		{"3 days", -1},
		{"", -1},
	} {
		got, err := parseDuration(tt.text)
		if (err != nil) != (tt.want < 0) || err == nil && got != tt.want {
			t.Errorf("parseDuration(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
}

// FuzzDuration: a duration with days is never negative, and one without days means what Go
// reads.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"1d12h", "65535d2562047h47m16.854775807s", "-1d", "1h", "d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseDuration(text)
		if strings.Contains(text, "d") {
			if err == nil && got < 0 {
				t.Errorf("parseDuration(%q) = %v", text, got)
			}
			return
		}
		if want, wantErr := time.ParseDuration(text); got != want || (err == nil) != (wantErr == nil) {
			t.Errorf("parseDuration(%q) = %v, %v, want %v, %v", text, got, err, want, wantErr)
		}
	})
}
