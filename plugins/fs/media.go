package main

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/toolhost/toolhost/sdk/tool"
)

// mediaTypeOf returns what a file is by its beginning. What has several names has
// the one that clients know, and a PNG that moves is one all the same.
func mediaTypeOf(head []byte) string {
	switch found := mimetype.Detect(head).String(); found {
	case "image/apng", "image/vnd.mozilla.apng":
		return "image/png"
	case "audio/x-m4a":
		return "audio/mp4"
	default:
		return found
	}
}

// isMedia reports whether a model may see or hear the type itself.
func isMedia(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4":
		return true
	default:
		return false
	}
}

// readBinary returns an image or audio as content, and says what else is.
func (w *workspace) readBinary(f *file) (tool.Result, error) {
	facts := map[string]any{"path": f.path, "total_bytes": f.size, "media_type": f.mediaType}
	room := int64(min(w.budget, w.maxRead))
	if !isMedia(f.mediaType) {
		text := fmt.Sprintf("Binary file: %s, %d bytes", f.mediaType, f.size)
		return tool.Result{Content: []tool.Content{tool.Text(text)}, Metadata: facts}, nil
	}
	if f.size > room {
		text := fmt.Sprintf("%s of %d bytes, too large to show: at most %d bytes are possible", f.mediaType, f.size, room)
		return tool.Result{Content: []tool.Content{tool.Text(text)}, Metadata: facts}, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, f.size))
	if err != nil {
		return tool.Result{}, readError(err)
	}
	facts["total_bytes"] = len(data) // it may have become shorter
	kind := tool.KindImage
	if strings.HasPrefix(f.mediaType, "audio/") {
		kind = tool.KindAudio
	}
	content := tool.Content{Kind: kind, MediaType: f.mediaType, Name: path.Base(f.path), Data: data}
	return tool.Result{Content: []tool.Content{content}, Metadata: facts}, nil
}
