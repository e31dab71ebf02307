// Package thumbnail makes images smaller, in a process of its own: an image of few bytes can
// take a lot of memory.
package thumbnail

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	_ "image/gif" // image.Decode finds the decoders
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
	"github.com/toolhost/toolhost/sdk/worker"
)

const (
	// MaxPixels is the number of pixels of the largest image that is decoded.
	MaxPixels = 40_000_000
	// MaxSide is the width and height in pixels above which a model sees no more of an image.
	MaxSide = 2000
	// minSide is the smallest longer side of an image that shows something.
	minSide = 64
	// quality is the quality of JPEG images, up to 100.
	quality = 85
	// function is the function of the process, and processTime its processor time.
	function    = "make-thumbnail"
	processTime = 20 * time.Second
)

// Size returns the width and height of an image, from its beginning. It reports false if the
// image is of another format than PNG, JPEG and GIF, or damaged.
func Size(r io.Reader) (width, height int, ok bool) {
	config, _, err := image.DecodeConfig(bufio.NewReader(r))
	return config.Width, config.Height, err == nil && config.Width > 0 && config.Height > 0
}

// request is the request to the process.
type request struct {
	// Size is the size of the file. MaxBytes is the maximum size of the thumbnail.
	Size     int64 `json:"size"`
	MaxBytes int   `json:"max_bytes"`
}

// Thumbnail is an image as small as requested.
type Thumbnail struct {
	Data          []byte
	MediaType     string
	Width, Height int
}

// Make returns the image of a file as one with sides of at most [MaxSide] and at most maxBytes.
// It returns the first picture of an animation. The caller has checked [MaxPixels].
func Make(ctx context.Context, f *os.File, size int64, maxBytes int) (Thumbnail, error) {
	var t Thumbnail
	err := worker.Run(ctx, worker.Job{
		Function: function, Request: request{Size: size, MaxBytes: maxBytes}, File: f, Time: processTime,
		MaxAnswer: tool.ByteSize(maxBytes)*4/3 + tool.KiB, // base64
	}, &t)
	if errors.Is(err, worker.ErrLimit) {
		return t, tool.Errorf(tool.ResourceExhausted, "the image takes too much time or memory to decode").WithCause(err)
	}
	return t, err
}

// AddFunction adds the function of the process.
func AddFunction(to map[string]worker.Function) {
	to[function] = func(in worker.Input) (any, error) {
		var r request
		if err := json.Unmarshal(in.Request, &r); err != nil {
			return nil, err
		}
		return makeHere(io.NewSectionReader(in.File, 0, r.Size), r.MaxBytes)
	}
}

// source is an image.
type source interface {
	io.ReadSeeker
	io.ReaderAt
}

// makeHere makes a thumbnail in this process.
func makeHere(file source, maxBytes int) (Thumbnail, error) {
	width, height, ok := Size(file)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return Thumbnail{}, err
	}
	if !ok || width > MaxPixels/height {
		return Thumbnail{}, tool.Errorf(tool.Failed, "the image is damaged, or has more than %d pixels", MaxPixels)
	}
	decoded, format, err := image.Decode(bufio.NewReader(file))
	if err != nil {
		return Thumbnail{}, tool.Errorf(tool.Failed, "the image is damaged: %v", err)
	}
	m, ok := decoded.(image.RGBA64Image)
	if !ok {
		return Thumbnail{}, tool.Errorf(tool.Failed, "the image has pixels of an unknown kind")
	}
	if format == "jpeg" {
		head, _ := io.ReadAll(io.NewSectionReader(file, 0, maxHead)) // it was read before
		m = turned{m, orientation(head)}
	}
	for side := MaxSide; side >= minSide; side = side * 3 / 4 {
		small := shrink(m, side)
		m = small // the next smaller one is made of it, which takes less time
		for _, mediaType := range mediaTypes(format, small) {
			t := Thumbnail{MediaType: mediaType, Width: small.Rect.Dx(), Height: small.Rect.Dy()}
			if t.Data, err = encode(small, mediaType); err != nil {
				return Thumbnail{}, err
			}
			if len(t.Data) <= maxBytes {
				return t, nil
			}
		}
	}
	return Thumbnail{}, tool.Errorf(tool.ResourceExhausted, "the image does not fit %d bytes", maxBytes)
}

// mediaTypes returns the media types to try for an image that had the format. JPEG has no
// transparency, and blurs drawings and text: it is the second choice.
func mediaTypes(format string, m *image.RGBA) []string {
	switch {
	case format == "jpeg":
		return []string{"image/jpeg"}
	case m.Opaque():
		return []string{"image/png", "image/jpeg"}
	default:
		return []string{"image/png"}
	}
}

func encode(m image.Image, mediaType string) ([]byte, error) {
	var out bytes.Buffer
	if mediaType == "image/png" {
		err := png.Encode(&out, m)
		return out.Bytes(), err
	}
	err := jpeg.Encode(&out, m, &jpeg.Options{Quality: quality})
	return out.Bytes(), err
}
