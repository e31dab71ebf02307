package patch

import (
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// The lines of the form that begins with "*** Begin Patch".
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	addFile    = "*** Add File: "
	deleteFile = "*** Delete File: "
	updateFile = "*** Update File: "
	moveTo     = "*** Move to: "
	endOfFile  = "*** End of File"
)

// sections returns the beginnings of the part about one file.
func sections() []string { return []string{addFile, deleteFile, updateFile} }

// beginPatch parses a patch in that form, which has no line numbers.
func (r *reader) beginPatch() error {
	r.at++
	for r.more() && r.trimmed() != endPatch {
		f := File{Line: r.number(), EndKept: true}
		var err error
		switch line := r.trimmed(); {
		case line == "":
			r.at++
			continue
		case strings.HasPrefix(line, addFile):
			err = r.addedFile(&f)
		case strings.HasPrefix(line, deleteFile):
			f.Operation = Delete
			f.Old, err = r.path(deleteFile)
		case strings.HasPrefix(line, updateFile):
			err = r.updatedFile(&f)
		default:
			err = r.wrong("expected %q, %q or %q with the name of a file, or %q", addFile, updateFile, deleteFile, endPatch)
		}
		if err == nil {
			err = r.add(f)
		}
		if err != nil {
			return err
		}
	}
	if !r.more() {
		return r.wrong("expected %q: the patch seems to be cut off", endPatch)
	}
	for r.at++; r.more(); r.at++ {
		if r.trimmed() != "" {
			return r.wrong("expected nothing after %q", endPatch)
		}
	}
	if len(r.files) == 0 {
		return tool.Errorf(tool.InvalidArgument, "The patch is empty").WithHint("%s", forms)
	}
	return nil
}

// path parses the name of a file in the current line.
func (r *reader) path(before string) (string, error) {
	path := strings.TrimSpace(strings.TrimPrefix(r.trimmed(), before))
	if path == "" {
		return "", r.wrong("expected the name of a file")
	}
	r.at++
	return path, nil
}

// addedFile parses the content of a new file.
func (r *reader) addedFile(f *File) (err error) {
	f.Operation = Create
	if f.New, err = r.path(addFile); err != nil {
		return err
	}
	h := &Hunk{Line: r.number()}
	for ; r.more() && !r.atSection(); r.at++ {
		switch line := r.line(); {
		case strings.HasPrefix(line, "+"):
			h.Lines = append(h.Lines, Line{Kind: '+', Text: line[1:]})
		case r.trimmed() == endOfFile:
		case r.trimmed() == "" && r.blankToEnd():
		default:
			return r.wrong("expected a line that begins with +")
		}
	}
	if len(h.Lines) == 0 {
		return nil
	}
	return r.addHunk(f, h)
}

// atSection reports whether the current line begins another part.
func (r *reader) atSection() bool {
	line := r.trimmed()
	for _, section := range sections() {
		if strings.HasPrefix(line, section) {
			return true
		}
	}
	return line == endPatch
}

// blankToEnd reports whether only blank lines precede the next part.
func (r *reader) blankToEnd() bool {
	ahead := *r
	for ahead.more() && ahead.trimmed() == "" {
		ahead.at++
	}
	return ahead.atSection() || !ahead.more()
}

// updatedFile parses the changes of a file, and its new name if it moves.
func (r *reader) updatedFile(f *File) (err error) {
	f.Operation = Update
	if f.Old, err = r.path(updateFile); err != nil {
		return err
	}
	f.New = f.Old
	if strings.HasPrefix(r.trimmed(), moveTo) {
		f.Operation = Rename
		if f.New, err = r.path(moveTo); err != nil {
			return err
		}
	}
	for r.more() && !r.atSection() {
		if r.trimmed() == "" && r.blankToEnd() {
			r.at++
			continue
		}
		if err := r.chunk(f); err != nil {
			return err
		}
	}
	if len(f.Hunks) == 0 && f.Operation == Update {
		return wrongAt(f.Line, "the patch says nothing about %s; expected changed lines after it", tool.VisibleName(f.Old))
	}
	return nil
}

// chunk parses one hunk: lines that begin with @@ and locate it, and then its own lines.
func (r *reader) chunk(f *File) error {
	h := &Hunk{Line: r.number()}
	for ; strings.HasPrefix(r.line(), "@@"); r.at++ {
		if header := hunkHeader.FindStringSubmatch(r.line()); header != nil {
			h.Start = countIn(header[1])
		} else if within := anchorOf(strings.TrimSuffix(r.line(), "\r")); within != "" {
			h.Within = append(h.Within, within)
		}
	}
	for ; r.more() && !r.atSection() && !strings.HasPrefix(r.line(), "@@"); r.at++ {
		line := r.line()
		if r.trimmed() == endOfFile {
			h.AtEnd = true
			r.at++
			break
		}
		if r.trimmed() == "" && r.blankToEnd() {
			break
		}
		kind := kindOf(line)
		if kind == 0 || kind == '\\' && len(h.Lines) == 0 {
			return r.wrong("expected a line that begins with a space, - or +, or with @@")
		}
		if kind == '\\' {
			continue // the file decides about its last line end
		}
		if line == "" || line == "\r" {
			line = " " + line
		}
		h.Lines = append(h.Lines, Line{Kind: kind, Text: line[1:]})
	}
	if len(h.Lines) == 0 {
		return r.wrong("expected the lines of the hunk, each with a space, - or + before it")
	}
	return r.addHunk(f, h)
}
