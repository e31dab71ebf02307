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
	// maxCodings bounds the content codings of a body.
	maxCodings = 2
	// maxWindow bounds the window of zstd: the maximum that RFC 9659 allows a server.
	maxWindow = 8 << 20
	// step is the number of bytes to decompress at once. It bounds how far a body can
	// exceed its limit.
	step = 32 << 10
)

// errTooLarge reports that a body exceeds its limit.
var errTooLarge = errors.New("the body is too large")

// decoder reads one body.
type decoder struct {
	// limit bounds the bytes of the body, both compressed and decompressed.
	limit int64
	// length is the Content-Length; 0 or less if it is unknown.
	length int64
	// places has one slot for each body that may be decompressed at the same time, since
	// each may take 32 MiB of memory in addition to its result. Nil means no bound.
	places chan struct{}
}

// decode reads a body and decompresses it as its Content-Encoding requires. If the body
// exceeds the limit, decode returns the bytes up to the limit and errTooLarge.
//
// It reads the whole body before it decompresses it, so that a slow server cannot hold
// the memory that this takes. It waits for its slot, and decompresses, until ctx ends.
func (d *decoder) decode(ctx context.Context, body io.Reader, encodings []string) ([]byte, error) {
	var names []string
	for name := range strings.SplitSeq(strings.Join(encodings, ","), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
			names = append(names, name)
		}
	}
	came, err := read(&bounded{reader: body, left: d.limit}, d.length, d.limit)
	if len(names) == 0 || len(came) == 0 || err != nil && !errors.Is(err, errTooLarge) {
		return came, err // for example, the response to a HEAD request has no body
	}
	if d.places != nil {
		select {
		case d.places <- struct{}{}:
			defer func() { <-d.places }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	unpacked, unpackErr := d.decompress(ctx, came, names)
	if err != nil {
		return unpacked, err
	}
	return unpacked, unpackErr
}

// decompress decompresses a body that was encoded with these codings, in this order.
func (d *decoder) decompress(ctx context.Context, packed []byte, names []string) ([]byte, error) {
	if len(names) > maxCodings {
		return nil, fmt.Errorf("it has %d content codings, at most %d are supported", len(names), maxCodings)
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

// until returns a reader that fails once ctx has ended.
func until(ctx context.Context, from io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return from.Read(p)
	})
}

// readerFunc is a function that implements [io.Reader].
type readerFunc func(p []byte) (int, error)

// Read implements [io.Reader].
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// read reads until EOF. It starts with a buffer of length bytes, if length is known, and
// grows it to at most most+1 bytes: the last one is needed to find the EOF. The capacity
// of the result fits its length.
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

// unpack returns a reader that decompresses one coding, and a function that frees it.
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
		name = "unknown"
	}
	return nil, nil, fmt.Errorf("its content coding %q is not supported", name)
}

// bounded is a reader that fails with errTooLarge after a number of bytes.
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
