package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// snapshot is what a file held when it was looked at.
type snapshot struct {
	exists bool
	size   int64
	// hash is that of the content; "" if the file is larger than maxWhole.
	hash string
	// data is the content, if it is not larger than was asked for.
	data []byte
	kept bool
	// head is the beginning of the content, at most headSize bytes.
	head []byte
	// mark stands for the content where it has no hash.
	mark string
}

// take reads a file once. Its content is kept if it has keep bytes at most.
// What is not there, or not a regular file, has no content.
func take(ctx context.Context, t *roots.Target, keep int64) (snapshot, error) {
	s, f, err := peek(t)
	if err != nil || f == nil {
		return s, err
	}
	defer f.Close()
	if s.size > maxWhole {
		return s, nil
	}
	digest := sha256.New()
	var content bytes.Buffer
	to := io.Writer(digest)
	if s.kept = s.size <= keep; s.kept {
		content.Grow(int(s.size) + bytes.MinRead)
		to = io.MultiWriter(digest, &content)
	}
	n, err := copyAll(ctx, to, f, s.size) // one more shows that it has grown
	if err != nil {
		return snapshot{}, readError(err)
	}
	if n != s.size {
		return snapshot{}, tool.Errorf(tool.Conflict, "%s was changed by somebody else at the same time", tool.VisibleName(t.String())).WithHint("look at it again")
	}
	s.hash = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	s.data = content.Bytes()
	return s, nil
}

// peek looks at a file without reading more than its head. The caller closes it; it
// is nil if there is none that can be read.
func peek(t *roots.Target) (s snapshot, f *os.File, err error) {
	info := t.Info()
	if info == nil {
		return snapshot{kept: true}, nil, nil
	}
	s = snapshot{exists: true, size: info.Size(), mark: fmt.Sprintf("%v %d %d", info.Mode().Type(), info.Size(), info.ModTime().UnixNano())}
	if !info.Mode().IsRegular() {
		return s, nil, nil
	}
	if f, err = t.Open(); err != nil {
		return snapshot{}, nil, err
	}
	s.head = make([]byte, min(headSize, s.size))
	n, err := f.ReadAt(s.head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		_ = f.Close() // it was only read
		return snapshot{}, nil, readError(err)
	}
	s.head = s.head[:n]
	return s, f, nil
}

// copyAll copies what there is, but no more than most bytes and one more.
func copyAll(ctx context.Context, to io.Writer, from io.Reader, most int64) (int64, error) {
	var total int64
	for total <= most {
		if ctx.Err() != nil {
			return total, context.Cause(ctx)
		}
		n, err := io.CopyN(to, from, min(maxDiff, most+1-total))
		total += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// state is the snapshot as a part of a change's state.
func (s *snapshot) state() string {
	switch {
	case !s.exists:
		return "absent"
	case s.hash != "":
		return s.hash
	default:
		return s.mark
	}
}

// text returns the content as text, and how it is written. It is not ok if the
// content was not kept or is no text.
func (s *snapshot) text() (text string, c charset, ok bool) {
	if !s.exists {
		return "", charset{name: "utf-8", unit: 1}, true
	}
	if c, ok = s.charset(); !ok || !s.kept {
		return "", c, false
	}
	text, err := c.decode(s.data)
	return text, c, err == nil
}

// charset is how the content is text. It is not ok if it is none.
func (s *snapshot) charset() (c charset, ok bool) {
	c, ok = detectCharset(s.head, int64(len(s.head)) == s.size)
	return c, ok && !isMedia(mediaTypeOf(s.head))
}

// describe says what the content is, for a person.
func (s *snapshot) describe() string {
	if !s.exists {
		return "nothing"
	}
	parts := []string{fmt.Sprintf("%d bytes", s.size)}
	if s.hash != "" {
		parts = append(parts, s.hash)
	}
	if len(s.head) > 0 {
		parts = append(parts, mediaTypeOf(s.head))
	}
	return strings.Join(parts, ", ")
}

// expect refuses a file whose content is not the one that the caller knows.
func (s *snapshot) expect(path, hash string) error {
	if hash == "" {
		return nil
	}
	sum, ok := strings.CutPrefix(hash, "sha256:")
	if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size {
		return tool.Errorf(tool.InvalidArgument, "expect_hash is %.80q, expected sha256: and 64 hex digits", hash).
			WithHint("use the hash that file_info shows")
	}
	switch {
	case !s.exists:
		return tool.Errorf(tool.Conflict, "%s does not exist, but expect_hash says what it holds", tool.VisibleName(path)).WithHint("leave expect_hash out to create it")
	case s.hash == "":
		return tool.Errorf(tool.ResourceExhausted, "%s has %d bytes, at most %d can be compared with expect_hash", tool.VisibleName(path), s.size, maxWhole)
	case !strings.EqualFold(s.hash, hash):
		return tool.Errorf(tool.Conflict, "%s has changed: its hash is %s", tool.VisibleName(path), s.hash).WithHint("read it again before you change it, and then give this hash")
	default:
		return nil
	}
}
