// Package snapshot records the content of a file at one moment, to detect later changes, and
// shows a person the effect of a change.
package snapshot

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
	"syscall"

	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// MaxWhole is the maximum size of a file that is read to its end, to count its lines and
// hash it.
const MaxWhole = 64 << 20

// Snapshot is the content of a file at the time of reading.
type Snapshot struct {
	Exists bool
	Size   int64
	// Hash is the hash of the content; "" if the file is larger than MaxWhole.
	Hash string
	// Data is the content, if Kept is true.
	Data []byte
	Kept bool
	// Head is the beginning of the content, at most [textfile.HeadSize] bytes.
	Head []byte
	// mark replaces content that has no hash.
	mark string
}

// Take reads a file once. It keeps content of at most keep bytes. A missing or non-regular file
// has no content.
func Take(ctx context.Context, t *roots.Target, keep int64) (Snapshot, error) {
	s, f, err := Peek(t)
	if err != nil || f == nil {
		return s, err
	}
	defer f.Close()
	if s.Size > MaxWhole {
		return s, nil
	}
	digest := sha256.New()
	var content bytes.Buffer
	to := io.Writer(digest)
	if s.Kept = s.Size <= keep; s.Kept {
		content.Grow(int(s.Size) + bytes.MinRead)
		to = io.MultiWriter(digest, &content)
	}
	n, err := CopyAll(ctx, to, f, s.Size) // one more shows that it has grown
	if err != nil {
		return Snapshot{}, ReadError(err)
	}
	if n != s.Size {
		return Snapshot{}, tool.Errorf(tool.Conflict, "%s was changed by another program at the same time", display.VisibleName(t.String())).WithHint("look at it again")
	}
	s.Hash = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	s.Data = content.Bytes()
	return s, nil
}

// Peek opens a file and reads only its head. The caller closes the file, which is nil if
// there is no regular file.
func Peek(t *roots.Target) (s Snapshot, f *os.File, err error) {
	info := t.Info()
	if info == nil {
		return Snapshot{Kept: true}, nil, nil
	}
	s = Snapshot{Exists: true, Size: info.Size(), mark: fmt.Sprintf("%v %d %d", info.Mode().Type(), info.Size(), info.ModTime().UnixNano())}
	if !info.Mode().IsRegular() {
		return s, nil, nil
	}
	if f, err = t.Open(); err != nil {
		return Snapshot{}, nil, err
	}
	s.Head = make([]byte, min(textfile.HeadSize, s.Size))
	n, err := f.ReadAt(s.Head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		_ = f.Close() // it was only read
		return Snapshot{}, nil, ReadError(err)
	}
	s.Head = s.Head[:n]
	return s, f, nil
}

// CopyAll copies at most most+1 bytes: the last one shows that there are more.
func CopyAll(ctx context.Context, to io.Writer, from io.Reader, most int64) (int64, error) {
	var total int64
	for total <= most {
		if ctx.Err() != nil {
			return total, context.Cause(ctx)
		}
		n, err := io.CopyN(to, from, min(MaxDiff, most+1-total))
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

// State returns the snapshot as a part of the state that a change depends on.
func (s *Snapshot) State() string {
	switch {
	case !s.Exists:
		return "absent"
	case s.Hash != "":
		return s.Hash
	default:
		return s.mark
	}
}

// Text returns the content as text, and its encoding. It reports false if the content was
// not kept or is not text.
func (s *Snapshot) Text() (text string, c textfile.Charset, ok bool) {
	if !s.Exists {
		return "", textfile.Charset{Name: "utf-8", Unit: 1}, true
	}
	if c, ok = s.Charset(); !ok || !s.Kept {
		return "", c, false
	}
	text, err := c.Decode(s.Data)
	return text, c, err == nil
}

// Charset returns the encoding of the content. It reports false if the content is not
// text.
func (s *Snapshot) Charset() (c textfile.Charset, ok bool) {
	c, ok = textfile.Detect(s.Head, int64(len(s.Head)) == s.Size)
	return c, ok && !textfile.IsMedia(textfile.MediaType(s.Head))
}

// Describe describes the content for a person.
func (s *Snapshot) Describe() string {
	if !s.Exists {
		return "nothing"
	}
	parts := []string{fmt.Sprintf("%d bytes", s.Size)}
	if s.Hash != "" {
		parts = append(parts, s.Hash)
	}
	if len(s.Head) > 0 {
		parts = append(parts, textfile.MediaType(s.Head))
	}
	return strings.Join(parts, ", ")
}

// Expect returns an error if the content does not have the hash that the caller knows.
func (s *Snapshot) Expect(path, hash string) error {
	if hash == "" {
		return nil
	}
	sum, ok := strings.CutPrefix(hash, "sha256:")
	if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size {
		return tool.Errorf(tool.InvalidArgument, "expect_hash is %.80q, expected sha256: and 64 hex digits", hash).
			WithHint("use the hash that file_info shows")
	}
	switch {
	case !s.Exists:
		return tool.Errorf(tool.Conflict, "%s does not exist, but expect_hash is given", display.VisibleName(path)).WithHint("leave expect_hash out to create it")
	case s.Hash == "":
		return tool.Errorf(tool.ResourceExhausted, "%s has %d bytes, at most %d can be compared with expect_hash", display.VisibleName(path), s.Size, MaxWhole)
	case !strings.EqualFold(s.Hash, hash):
		return tool.Errorf(tool.Conflict, "%s has changed: its hash is %s", display.VisibleName(path), s.Hash).WithHint("read it again before you change it, and then give this hash")
	default:
		return nil
	}
}

// ReadError returns the error of a read from an open file for a model. It uses the text
// of the error number: the text of err names the file in the host's terms.
func ReadError(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return tool.Errorf(tool.Failed, "Failed to read file: %s", errno.Error()).WithCause(err)
	}
	return err
}
