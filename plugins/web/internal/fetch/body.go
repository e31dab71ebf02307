package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	acceptEncoding = "gzip, br, zstd"
	// maxCodings bounds how many times a body may be packed.
	maxCodings = 2
	// maxWindow is what a body packed with zstd may ask to be kept in memory: the
	// most that RFC 9659 lets a server ask for.
	maxWindow = 8 << 20
	// step is how much of a body is unpacked at once: beyond a bound no more is.
	step = 32 << 10
)

// errTooLarge is in the error about a body that has more bytes than it may.
var errTooLarge = errors.New("the body is too large")

// decoder reads one body.
type decoder struct {
	// limit bounds the bytes that come, and those that are unpacked.
	limit int64
	// length is how many bytes the server says that come; 0 or less if it does not.
	length int64
	// places has one for each body that is unpacked at the same time: each may take
	// 32 MiB for what was unpacked before, beside what it becomes. Nil bounds nothing.
	places chan struct{}
}

// decode reads a body that is packed as its Content-Encoding says. It stops when
// there are more bytes than there may be, and returns those that it has.
//
// All of a body is there before it is unpacked, so that no server can keep the memory
// that this takes by being slow. It waits for its place until ctx ends, and stops to
// unpack then.
func (d *decoder) decode(ctx context.Context, body io.Reader, encodings []string) ([]byte, error) {
	var names []string
	for name := range strings.SplitSeq(strings.Join(encodings, ","), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
			names = append(names, name)
		}
	}
	came, err := read(&bounded{reader: body, left: d.limit}, d.length, d.limit)
	if len(names) == 0 || len(came) == 0 || err != nil && !errors.Is(err, errTooLarge) {
		return came, err // the answer to a HEAD, say, has no body to unpack
	}
	if d.places != nil {
		select {
		case d.places <- struct{}{}:
			defer func() { <-d.places }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	unpacked, unpackErr := d.unpack(ctx, came, names)
	if err != nil {
		return unpacked, err
	}
	return unpacked, unpackErr
}

// unpack unpacks what was packed by these names, the last one last.
func (d *decoder) unpack(ctx context.Context, packed []byte, names []string) ([]byte, error) {
	if len(names) > maxCodings {
		return nil, fmt.Errorf("it is packed %d times, at most %d are possible", len(names), maxCodings)
	}
	last := &bounded{reader: until(ctx, bytes.NewReader(packed)), left: d.limit}
	for _, name := range slices.Backward(names) {
		unpacked, closing, err := unpack(name, last)
		if err != nil {
			return nil, err
		}
		defer closing()
		last = &bounded{reader: unpacked, left: d.limit}
	}
	return read(until(ctx, last), 0, d.limit)
}

// until returns a reader that fails when ctx has ended.
func until(ctx context.Context, from io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return from.Read(p)
	})
}

// readerFunc is a function that reads.
type readerFunc func(p []byte) (int, error)

// Read implements [io.Reader].
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// read reads all there is. It begins with room for length bytes, if that is known,
// and never has room for more than most and one, which is where the end is found. What
// it returns takes the memory of its length.
func read(from io.Reader, length, most int64) ([]byte, error) {
	room := int64(512)
	if length > 0 {
		room = length + 1
	}
	out := make([]byte, 0, min(room, most+1))
	for {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), min(2*int64(cap(out)), most+1))
			copy(grown, out)
			out = grown
		}
		n, err := from.Read(out[len(out):min(len(out)+step, cap(out))])
		out = out[:len(out)+n]
		switch {
		case errors.Is(err, io.EOF) && cap(out) > len(out)+1:
			return bytes.Clone(out), nil
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		}
	}
}

// unpack returns a reader of what is packed, and what lets go of it.
func unpack(name string, packed io.Reader) (io.Reader, func(), error) {
	switch name {
	case "gzip", "x-gzip":
		reader, err := gzip.NewReader(packed)
		return reader, func() {}, err
	case "br":
		return brotli.NewReader(packed), func() {}, nil
	case "zstd":
		reader, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return reader, reader.Close, nil
	}
	if len(name) > 20 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		name = "something"
	}
	return nil, nil, fmt.Errorf("it is packed by %q, which is not known", name)
}

// bounded reads at most a number of bytes, and fails if there are more.
type bounded struct {
	reader io.Reader
	left   int64
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, errTooLarge
	}
	return n, err
}
