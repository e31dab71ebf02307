package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// packer compresses its input.
func packer(tb testing.TB, name string, w io.Writer) io.WriteCloser {
	tb.Helper()
	switch name {
	case "gzip", "x-gzip":
		return gzip.NewWriter(w)
	case "br":
		return brotli.NewWriter(w)
	case "zstd":
		packer, err := zstd.NewWriter(w)
		if err != nil {
			tb.Fatal(err)
		}
		return packer
	}
	tb.Fatalf("no packer %q", name)
	return nil
}

// packed returns data packed by each of the names, one after the other.
func packed(tb testing.TB, data io.Reader, names ...string) []byte {
	tb.Helper()
	for _, name := range names {
		var out bytes.Buffer
		w := packer(tb, name, &out)
		if _, err := io.Copy(w, data); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
		data = &out
	}
	all, err := io.ReadAll(data)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// zeros is a number of zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(endless{}, n) }

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A body takes the memory of its length, and never more than the bound, whatever length the
// server declares.
func TestBodyTakesItsLength(t *testing.T) {
	const limit = 1 << 20
	for _, size := range []int64{0, 1, 511, 512, 513, 6 << 10, 700_000, limit - 1, limit, limit + 1, 3 * limit} {
		for _, told := range []int64{-1, 0, size, size / 2, 2 * size, 1 << 40} {
			d := decoder{limit: limit, length: told}
			body, err := d.decode(t.Context(), zeros(size), nil)
			want := min(size, limit)
			if int64(len(body)) != want || errors.Is(err, errTooLarge) != (size > limit) {
				t.Errorf("%d bytes, told as %d: %d came, %v", size, told, len(body), err)
			}
			if most := want + want/8 + 16; int64(cap(body)) > most {
				t.Errorf("%d bytes, told as %d: room for %d, want %d at most", size, told, cap(body), most)
			}
		}
	}
}

func TestDecode(t *testing.T) {
	text := strings.Repeat("some text ", 1000)
	for _, names := range [][]string{{}, {"gzip"}, {"x-gzip"}, {"br"}, {"zstd"}, {"gzip", "br"}, {"zstd", "gzip"}} {
		d := &decoder{limit: int64(len(text))}
		got, err := d.decode(t.Context(), bytes.NewReader(packed(t, strings.NewReader(text), names...)), []string{strings.Join(names, ", ")})
		if err != nil || string(got) != text {
			t.Errorf("%q: %d bytes, %v", names, len(got), err)
		}
		d = &decoder{limit: int64(len(text)) - 1}
		if got, err := d.decode(t.Context(), bytes.NewReader(packed(t, strings.NewReader(text), names...)), names); !errors.Is(err, errTooLarge) || string(got) != text[:len(got)] || len(got) < len(text)-1 {
			t.Errorf("%q, one byte more than may be: %d bytes, %v", names, len(got), err)
		}
	}
	for _, length := range []int64{-1, 0, 1, 5, 100, 1 << 60} { // whatever the server declares
		if got, err := (&decoder{limit: 1 << 20, length: length}).decode(t.Context(), strings.NewReader("hello"), nil); string(got) != "hello" || err != nil {
			t.Errorf("of %d bytes: %q, %v", length, got, err)
		}
	}
	thrice := packed(t, strings.NewReader(text), "gzip", "gzip", "gzip")
	if got, err := (&decoder{limit: 1 << 20}).decode(t.Context(), bytes.NewReader(thrice), []string{"gzip, gzip, gzip"}); err == nil {
		t.Errorf("packed three times: %d bytes", len(got))
	}
	var wide bytes.Buffer
	w, err := zstd.NewWriter(&wide, zstd.WithWindowSize(4*maxWindow))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, zeros(5*maxWindow)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if got, err := (&decoder{limit: 8 * maxWindow}).decode(t.Context(), &wide, []string{"zstd"}); err == nil {
		t.Errorf("with a window of %d: %d bytes", 4*maxWindow, len(got))
	}
	for name, encodings := range map[string][]string{"unknown": {"rot13"}, "not packed": {"gzip"}, "identity among": {"identity, br, identity, rot13"}} {
		if got, err := (&decoder{limit: 1 << 20}).decode(t.Context(), strings.NewReader("hello, hello, hello"), encodings); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, err := (&decoder{limit: 1 << 20}).decode(t.Context(), strings.NewReader("hello"), []string{"identity"}); string(got) != "hello" || err != nil {
		t.Errorf("identity: %q, %v", got, err)
	}
	for _, names := range []string{"gzip", "br", "zstd", "gzip, br", "deflate"} {
		if got, err := (&decoder{limit: 1 << 20}).decode(t.Context(), strings.NewReader(""), []string{names}); len(got) != 0 || err != nil {
			t.Errorf("no body, packed by %s: %q, %v", names, got, err)
		}
	}
}

// A slow server with a compressed body takes only the memory of the received data: these headers
// ask for 16 MiB each.
func TestSlowBombs(t *testing.T) {
	head := binary.LittleEndian.AppendUint32(nil, 0b1111|2<<5|0xffffff<<7|1<<31) // of brotli: what follows is not packed
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	places := make(chan struct{}, 1)
	var decoding sync.WaitGroup
	var servers []*io.PipeWriter
	for range 16 {
		body, server := io.Pipe()
		servers = append(servers, server)
		decoding.Go(func() {
			if _, err := (&decoder{limit: 5 << 20, places: places}).decode(t.Context(), body, []string{"br, br"}); err == nil {
				t.Error("a body that was cut is whole")
			}
		})
		if _, err := server.Write(slices.Concat(head, head, make([]byte, 100_000))); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("16 bodies of 100 KB take %d MiB", grown>>20)
	}
	if _, err := (&decoder{limit: 1 << 20, places: places}).decode(t.Context(), bytes.NewReader(packed(t, strings.NewReader("hello"), "br")), []string{"br"}); err != nil {
		t.Errorf("another body: %v", err)
	}
	for _, server := range servers {
		_ = server.Close()
	}
	decoding.Wait()
}

// Who waits for a place to unpack a body, or unpacks one, ends with its context.
func TestUnpackingEnds(t *testing.T) {
	gave := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	places := make(chan struct{}, 1)
	places <- struct{}{} // another body is unpacked
	body := packed(t, zeros(1<<20), "gzip")
	ended := make(chan error)
	go func() { // ends with ctx
		_, err := (&decoder{limit: 2 << 20, places: places}).decode(ctx, bytes.NewReader(body), []string{"gzip"})
		ended <- err
	}()
	cancel(gave)
	if err := <-ended; !errors.Is(err, gave) {
		t.Errorf("a body that waits for its place: %v, want %v", err, gave)
	}
	<-places
	if got, err := (&decoder{limit: 2 << 20, places: places}).decode(ctx, bytes.NewReader(body), []string{"gzip"}); !errors.Is(err, gave) || len(got) > 0 {
		t.Errorf("a body that is unpacked: %d bytes, %v, want %v", len(got), err, gave)
	}
	if len(places) > 0 {
		t.Error("a place is not given back")
	}
}

// FuzzDecode reads bodies that are not packed as they say.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"gzip", "br", "zstd"} {
		f.Add(packed(f, strings.NewReader("hello"), name), name)
	}
	f.Add([]byte("hello"), "gzip, br")
	f.Fuzz(func(t *testing.T, body []byte, encoding string) {
		d := &decoder{limit: 1 << 20}
		if got, err := d.decode(t.Context(), bytes.NewReader(body), []string{encoding}); err == nil && len(got) > 1<<20 {
			t.Errorf("%d bytes", len(got))
		}
	})
}
