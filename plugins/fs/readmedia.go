package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/plugins/fs/internal/thumbnail"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxImageHead is how much of an image is read to find its width and height.
const maxImageHead = 1 << 20

// readBinary returns an image or audio file as content, and describes any other file.
func (w *workspace) readBinary(ctx context.Context, f *file) (tool.Result, error) {
	facts := map[string]any{"path": f.path, "total_bytes": f.size, "media_type": f.mediaType}
	if !textfile.IsMedia(f.mediaType) {
		text := fmt.Sprintf("Binary file: %s, %d bytes", f.mediaType, f.size)
		return tool.Result{Content: []tool.Content{tool.Text(text)}, Metadata: facts}, nil
	}
	width, height, known := thumbnail.Size(io.NewSectionReader(f, 0, min(f.size, maxImageHead)))
	if known {
		facts["width"], facts["height"] = width, height
		if width > thumbnail.MaxPixels/height {
			text := fmt.Sprintf("%s of %d x %d pixels, too large to show: the maximum is %d pixels", f.mediaType, width, height, thumbnail.MaxPixels)
			return tool.Result{Content: []tool.Content{tool.Text(text)}, Metadata: facts}, nil
		}
	}
	if known && (f.size > int64(w.maxRead) || max(width, height) > thumbnail.MaxSide) {
		return w.readLargeImage(ctx, f, facts)
	}
	return w.readMedia(f, facts)
}

// readLargeImage returns an image that is made smaller. If that fails, it returns the image
// unless that is too large, and why it failed.
func (w *workspace) readLargeImage(ctx context.Context, f *file, facts map[string]any) (tool.Result, error) {
	release, err := w.holdRoom(ctx, allRoom) // the process has a lot of memory
	if err != nil {
		return tool.Result{}, err
	}
	defer release()
	small, err := thumbnail.Make(ctx, f.File, f.size, w.maxRead)
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if err != nil {
		result, readErr := w.readMedia(f, facts)
		note := fmt.Sprintf("[it could not be made smaller: %s]", tool.AsError(err).Message)
		result.Content = append(result.Content, tool.Text(note))
		return result, readErr
	}
	facts["shown_width"], facts["shown_height"] = small.Width, small.Height
	note := fmt.Sprintf("[made smaller: %d x %d pixels of %v x %v, %s, %d of %d bytes]", small.Width, small.Height, facts["width"], facts["height"], small.MediaType, len(small.Data), f.size)
	content := tool.Content{Kind: tool.KindImage, MediaType: small.MediaType, Name: path.Base(f.path), Data: small.Data}
	return tool.Result{Content: []tool.Content{content, tool.Text(note)}, Metadata: facts}, nil
}

// readMedia returns an image or audio file as it is, unless it is too large.
func (w *workspace) readMedia(f *file, facts map[string]any) (tool.Result, error) {
	if f.size > int64(w.maxRead) {
		text := fmt.Sprintf("%s of %d bytes, too large to show: the maximum is %d bytes", f.mediaType, f.size, w.maxRead)
		return tool.Result{Content: []tool.Content{tool.Text(text)}, Metadata: facts}, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, f.size))
	if err != nil {
		return tool.Result{}, snapshot.ReadError(err)
	}
	facts["total_bytes"] = len(data) // it may have become shorter
	kind := tool.KindImage
	if strings.HasPrefix(f.mediaType, "audio/") {
		kind = tool.KindAudio
	}
	content := tool.Content{Kind: kind, MediaType: f.mediaType, Name: path.Base(f.path), Data: data}
	return tool.Result{Content: []tool.Content{content}, Metadata: facts}, nil
}
