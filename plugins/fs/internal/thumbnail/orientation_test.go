package thumbnail

import (
	"bytes"
	"image"
	"image/color"
	"strings"
	"testing"
)

// exif returns an APP1 segment with an orientation.
func exif(order string, orientation byte) string {
	entry := "\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(orientation)) + "\x00\x00"
	head := "MM\x00\x2A\x00\x00\x00\x08\x00\x02" + "\x01\x0F\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00"
	if order == "II" {
		entry = "\x12\x01\x03\x00\x01\x00\x00\x00" + string(rune(orientation)) + "\x00\x00\x00"
		head = "II\x2A\x00\x08\x00\x00\x00\x02\x00" + "\x0F\x01\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00"
	}
	data := "Exif\x00\x00" + head + entry
	return "\xFF\xE1\x00" + string(rune(len(data)+2)) + data
}

// A photo that a camera held otherwise is turned. The original has a red left half; the names of
// the corners tell where it is to be seen.
func TestOrientation(t *testing.T) {
	blue, red := color.RGBA{B: 255, A: 255}, color.RGBA{R: 255, A: 255}
	plain := string(encoded(t, "jpeg", halves(400, 200, blue)))
	for o, want := range map[byte]struct{ topLeft, topRight, bottomLeft color.RGBA }{
		1: {red, blue, red}, 2: {blue, red, blue}, 3: {blue, red, blue}, 4: {red, blue, red},
		5: {red, red, blue}, 6: {red, red, blue}, 7: {blue, blue, red}, 8: {blue, blue, red},
		9: {red, blue, red},
	} {
		for _, order := range []string{"MM", "II"} {
			photo := plain[:2] + exif(order, o) + plain[2:]
			got, err := makeHere(strings.NewReader(photo), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := image.Decode(bytes.NewReader(got.Data))
			if err != nil {
				t.Fatal(err)
			}
			right, bottom := m.Bounds().Dx()-1, m.Bounds().Dy()-1
			if standing := o >= 5 && o <= 8; standing != (bottom > right) {
				t.Errorf("orientation %d: %d x %d pixels", o, right+1, bottom+1)
			}
			if !near(m.At(0, 0), want.topLeft) || !near(m.At(right, 0), want.topRight) || !near(m.At(0, bottom), want.bottomLeft) {
				t.Errorf("orientation %d (%s): corners %v, %v, %v, want %v", o, order, m.At(0, 0), m.At(right, 0), m.At(0, bottom), want)
			}
		}
	}
}

// Two orientations that show halves alike differ in the order of pixels.
func TestTurned(t *testing.T) {
	m := image.NewRGBA(image.Rect(5, 5, 8, 7)) // 0 1 2 over 3 4 5
	for i := range 6 {
		m.SetRGBA(5+i%3, 5+i/3, color.RGBA{R: uint8(i), A: 255})
	}
	for o, want := range map[int]string{1: "012345", 2: "210543", 3: "543210", 4: "345012", 5: "031425", 6: "304152", 7: "524130", 8: "251403"} {
		got, v := "", turned{m, o}
		for y := range v.Bounds().Dy() {
			for x := range v.Bounds().Dx() {
				got += string(rune('0' + v.RGBA64At(x, y).R>>8))
			}
		}
		if got != want {
			t.Errorf("orientation %d = %s, want %s", o, got, want)
		}
	}
}

// Exif data that ends anywhere, or points anywhere, is not an orientation.
func TestHostileOrientation(t *testing.T) {
	photo := "\xFF\xD8" + exif("MM", 6) + "\xFF\xDA"
	for n := range len(photo) {
		if got := orientation([]byte(photo[:n])); got != 1 && got != 6 {
			t.Errorf("the first %d bytes: %d", n, got)
		}
	}
	for _, data := range []string{"\xFF\xD8\xFF\xE1\x00\x00", "\xFF\xD8\xFF\xE1\x00\x00\x00\x00\x00", "\xFF\xD8" + strings.Replace(exif("MM", 6), "\x00\x00\x00\x08", "\xFF\xFF\xFF\xFF", 1) + "\xFF\xDA", strings.Repeat("\xFF", 1000)} {
		if got := orientation([]byte(data)); got != 1 {
			t.Errorf("orientation(%q) = %d, want 1", data, got)
		}
	}
}
