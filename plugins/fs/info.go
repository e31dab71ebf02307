package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxCountLines is the maximum size of a file whose lines file_info counts.
const maxCountLines = 16 << 20

type fileInfoArgs struct {
	Path string `json:"path" jsonschema:"file or directory" role:"path" alias:"file_path,filename"`
}

// fileInfo is the tool file_info.
func fileInfo(ctx context.Context, w *workspace, in fileInfoArgs) (tool.Result, error) {
	path, err := w.Display(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	info, target, err := w.Lstat(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "path: %s\ntype: %s\n", display.VisibleName(path), roots.Kind(info.Mode()))
	if info.Mode().Type() == fs.ModeSymlink {
		fmt.Fprintf(&text, "target: %s\n", w.targetName(path, target))
	}
	if info.Mode().IsRegular() {
		fmt.Fprintf(&text, "size: %d bytes\n", info.Size())
	}
	fmt.Fprintf(&text, "mode: %#o\nmodified: %s\n", info.Mode().Perm(), info.ModTime().UTC().Format(time.RFC3339))
	if info.Mode().IsRegular() {
		if err := w.describeContent(ctx, in.Path, &text); err != nil {
			fmt.Fprintf(&text, "content: %s\n", tool.AsError(err).Message)
		}
	}
	return tool.TextResult(strings.TrimSuffix(text.String(), "\n")), nil
}

// describeContent describes the content of a file.
func (w *workspace) describeContent(ctx context.Context, name string, text *strings.Builder) error {
	f, err := w.openFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(text, "media type: %s\n", f.mediaType)
	digest := sha256.New()
	c, ok := textfile.Detect(f.head, f.whole())
	isText := ok && !textfile.IsMedia(f.mediaType)
	if isText {
		fmt.Fprintf(text, "encoding: %s\n", c.Describe())
	}
	switch {
	case isText && f.size <= maxCountLines:
		f.charset = c
		all, err := f.scan(ctx, textfile.CountOnly, 0, digest, true)
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "lines: %d\nline ends: %s\n", all.Lines, all.EOL())
	case f.size <= snapshot.MaxWhole:
		if _, err := snapshot.CopyAll(ctx, digest, io.NewSectionReader(f, 0, snapshot.MaxWhole), snapshot.MaxWhole); err != nil {
			return snapshot.ReadError(err)
		}
	default:
		return nil
	}
	fmt.Fprintf(text, "hash: sha256:%x\n", digest.Sum(nil))
	return nil
}
