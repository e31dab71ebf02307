//go:build !race

package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// pngOf returns an empty PNG of a size and color type that ends after some rows.
func pngOf(width, height uint32, colors byte, rows int) string {
	var out bytes.Buffer
	out.WriteString("\x89PNG\r\n\x1a\n")
	chunk := func(name string, data []byte) {
		body := append([]byte(name), data...)
		_ = binary.Write(&out, binary.BigEndian, uint32(len(data)))
		out.Write(body)
		_ = binary.Write(&out, binary.BigEndian, crc32.ChecksumIEEE(body))
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	chunk("IHDR", append(header, 8, colors, 0, 0, 0))
	var rest bytes.Buffer
	z := zlib.NewWriter(&rest)
	pixel := map[byte]int{0: 1, 6: 4}[colors]
	row := make([]byte, 1+int(width)*pixel)
	for range rows {
		_, _ = z.Write(row)
	}
	_ = z.Close()
	chunk("IDAT", rest.Bytes())
	chunk("IEND", nil)
	return out.String()
}

// An image that is larger than fits is made smaller, and the text says so.
func TestReadFileLargeImages(t *testing.T) {
	var asJPEG, asGIF, small bytes.Buffer
	wide := image.NewPaletted(image.Rect(0, 0, 3000, 1500), color.Palette{color.Black, color.White})
	for _, err := range []error{
		jpeg.Encode(&asJPEG, wide, nil), gif.Encode(&asGIF, wide, nil), png.Encode(&small, image.NewGray(image.Rect(0, 0, 200, 100))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filetest.Tree(t, map[string]string{
		"wide.png": pngOf(3000, 1500, 0, 1500), "wide.jpg": asJPEG.String(), "wide.gif": asGIF.String(), "small.png": small.String() + strings.Repeat("x", 2<<20),
		"as_is.png": small.String(),
	})
	p := start(t, dir, 4*tool.KiB)
	for _, tt := range []struct{ name, mediaType, note string }{
		{"wide.png", "image/png", "[made smaller: 2000 x 1000 pixels of 3000 x 1500, image/png, "},
		{"wide.jpg", "image/jpeg", "[made smaller: 2000 x 1000 pixels of 3000 x 1500, image/jpeg, "},
		{"wide.gif", "image/png", "[made smaller: 2000 x 1000 pixels of 3000 x 1500, image/png, "},
		{"small.png", "image/png", "[made smaller: 200 x 100 pixels of 200 x 100, image/png, "},
		{"as_is.png", "image/png", ""},
	} {
		got := p.Call(t.Context(), "read_file", readFileArgs{Path: tt.name})
		if got.Error != nil || len(got.Content) == 0 || got.Content[0].Kind != tool.KindImage || got.Content[0].MediaType != tt.mediaType || !strings.HasPrefix(got.Text(), tt.note) || (tt.note == "") != (got.Text() == "") {
			t.Errorf("%s: %d contents, %q, %v, want an image as %s, and %q", tt.name, len(got.Content), got.Text(), got.Error, tt.mediaType, tt.note)
		}
	}
	got := p.Call(t.Context(), "read_file", readFileArgs{Path: "wide.png"})
	for fact, want := range map[string]float64{"width": 3000, "height": 1500, "shown_width": 2000, "shown_height": 1000} {
		if got.Metadata[fact] != want {
			t.Errorf("%s is %v, want %v", fact, got.Metadata[fact], want)
		}
	}
}

// Hostile images are described, or returned as they are if they are not too large.
func TestReadFileHostileImages(t *testing.T) {
	cut := pngOf(3000, 3000, 6, 10)
	dir := filetest.Tree(t, map[string]string{
		"bomb.png": pngOf(65_536, 65_536, 0, 0), "cut.png": cut, "cut_large.png": cut + strings.Repeat("x", 2<<20),
		"header.jpg": "\xFF\xD8\xFF\xE0\x00\x10JFIF\x00" + strings.Repeat("\xFF", 2<<20), "header.webp": "RIFF\x24\x00\x00\x00WEBPVP8 " + strings.Repeat("x", 2<<20),
		"other.png": "\xFF\xD8\xFF\xE0\x00\x10JFIF\x00" + cut,
	})
	p := sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{dir}, MaxOutput: 4 * tool.KiB}})
	for name, want := range map[string]string{
		"bomb.png":      "image/png of 65536 x 65536 pixels, too large to show: the maximum is 40000000 pixels",
		"cut.png":       "[it could not be made smaller: the image is damaged: png: invalid format: not enough pixel data]",
		"cut_large.png": "image/png of 2097352 bytes, too large to show: the maximum is 1048576 bytes\n[it could not be made smaller: the image is damaged: png: invalid format: not enough pixel data]",
		"header.jpg":    "image/jpeg of 2097163 bytes, too large to show: the maximum is 1048576 bytes",
		"header.webp":   "image/webp of 2097168 bytes, too large to show: the maximum is 1048576 bytes",
		"other.png":     "",
	} {
		if got := p.Call(t.Context(), "read_file", readFileArgs{Path: name}); got.Error != nil || got.Text() != want {
			t.Errorf("%s = %q, %v, want %q", name, got.Text(), got.Error, want)
		}
	}
}

// Many images that take a lot of memory are decoded one after another.
func TestReadFilesOfLargeImages(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"large.png": pngOf(6000, 6000, 6, 6000)})
	p := start(t, dir, 4*tool.KiB)
	got := p.Call(t.Context(), "read_files", readFilesArgs{Paths: []string{"large.png", "large.png"}})
	if got.Error != nil || strings.Count(got.Text(), "[made smaller: 2000 x 2000 pixels of 6000 x 6000, ") != 2 {
		t.Errorf("read_files = %q, %v", got.Text(), got.Error)
	}
}
