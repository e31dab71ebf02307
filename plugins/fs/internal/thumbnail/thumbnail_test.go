package thumbnail

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// encoded returns an image in a format.
func encoded(t *testing.T, format string, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&out, m)
	case "jpeg":
		err = jpeg.Encode(&out, m, nil)
	default:
		err = gif.Encode(&out, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// halves returns an image that is red on the left and transparent, or blue, on the right.
func halves(width, height int, right color.RGBA) *image.RGBA {
	m := image.NewRGBA(image.Rect(-10, -20, width-10, height-20))
	for y := range height {
		for x := range width {
			c := right
			if x < width/2 {
				c = color.RGBA{R: 255, A: 255}
			}
			m.SetRGBA(x-10, y-20, c)
		}
	}
	return m
}

func TestMakeHere(t *testing.T) {
	blue := color.RGBA{B: 255, A: 255}
	for _, tt := range []struct {
		name, format  string
		m             image.Image
		mediaType     string
		width, height int
	}{
		{"png", "png", halves(2400, 600, blue), "image/png", 2000, 500},
		{"transparent", "png", halves(600, 2400, color.RGBA{}), "image/png", 500, 2000},
		{"jpeg", "jpeg", halves(2400, 600, blue), "image/jpeg", 2000, 500},
		{"gif", "gif", halves(2400, 600, blue), "image/png", 2000, 500},
		{"thin", "png", halves(10_000, 2, blue), "image/png", 2000, 1},
		{"small already", "png", halves(10, 5, blue), "image/png", 10, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := makeHere(bytes.NewReader(encoded(t, tt.format, tt.m)), 1<<20)
			if err != nil || got.MediaType != tt.mediaType || got.Width != tt.width || got.Height != tt.height {
				t.Fatalf("a thumbnail of %d x %d as %s, %v, want %d x %d as %s", got.Width, got.Height, got.MediaType, err, tt.width, tt.height, tt.mediaType)
			}
			m, _, err := image.Decode(bytes.NewReader(got.Data))
			if err != nil {
				t.Fatal(err)
			}
			for x, want := range map[int]color.Color{0: tt.m.At(-10, -20), tt.width - 1: tt.m.At(tt.m.Bounds().Max.X-1, -20)} {
				if !near(m.At(x, 0), want) {
					t.Errorf("the color at %d is %v, want %v", x, m.At(x, 0), want)
				}
			}
		})
	}
}

// near reports whether colors differ by no more than JPEG does.
func near(a, b color.Color) bool {
	difference := func(x, y uint32) bool { return max(x, y)-min(x, y) < 10<<8 }
	ar, ag, ab, aa := a.RGBA()
	br, bg, bb, ba := b.RGBA()
	return difference(ar, br) && difference(ag, bg) && difference(ab, bb) && difference(aa, ba)
}

// An image that does not fit becomes a JPEG, and then smaller and smaller.
func TestMakeHereFits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := image.NewRGBA(image.Rect(0, 0, 500, 300))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(random.Uint32())
		if i%4 == 3 {
			noise.Pix[i] = 255
		}
	}
	whole := encoded(t, "png", noise)
	for _, most := range []int{100_000, 20_000, 5000} {
		got, err := makeHere(bytes.NewReader(whole), most)
		if err != nil || len(got.Data) > most || got.MediaType != "image/jpeg" {
			t.Errorf("a thumbnail of %d bytes as %s, %v, want at most %d as JPEG", len(got.Data), got.MediaType, err, most)
		}
	}
	if _, err := makeHere(bytes.NewReader(whole), 100); tool.AsError(err) == nil || tool.AsError(err).Code != tool.ResourceExhausted {
		t.Errorf("a thumbnail of 100 bytes: %v", err)
	}
}

func TestMakeHereRefuses(t *testing.T) {
	large := encoded(t, "png", image.NewGray(image.Rect(0, 0, 1, 1)))
	copy(large[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65,536 x 65,536 pixels; the checksum is wrong
	cut := encoded(t, "png", halves(100, 100, color.RGBA{}))
	for name, data := range map[string][]byte{
		"nothing": {}, "text": []byte("GIF89a is a format"), "a header": cut[:40], "half": cut[:len(cut)/2], "too many pixels": large,
		"a wrong header": append([]byte("\xFF\xD8\xFF\xE0\x00\x10JFIF\x00"), cut...),
		"no pixels":      []byte("GIF89a\x00\x00\x00\x00\x00\x00\x00;"),
	} {
		if _, err := makeHere(bytes.NewReader(data), 1<<20); err == nil || tool.AsError(err).Code != tool.Failed {
			t.Errorf("%s: %v, want an error for a model", name, err)
		}
	}
}
