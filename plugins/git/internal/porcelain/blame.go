package porcelain

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Line is a line of a file and the commit that it is from.
type Line struct {
	Number int
	Commit *BlamedCommit
	Text   string
}

// BlamedCommit is what git blame says of a commit.
type BlamedCommit struct {
	ID, Author, Summary string
	Date                time.Time
}

// Blame reads the output of git blame --porcelain: lines, of which those with the
// text of the file begin with a tab. Of a line above MaxRecord it takes the beginning.
type Blame struct {
	each    func(Line)
	rest    []byte
	commits map[string]*BlamedCommit
	now     *BlamedCommit // of the lines that come
	number  int
	err     error
}

// NewBlame returns what calls each with every line.
func NewBlame(each func(Line)) *Blame {
	return &Blame{each: each, commits: map[string]*BlamedCommit{}}
}

// Write takes the next part of the output. It never fails: Close tells.
func (b *Blame) Write(data []byte) (int, error) {
	size := len(data)
	for b.err == nil {
		before, after, ended := bytes.Cut(data, []byte{'\n'})
		b.rest = append(b.rest, before[:min(len(before), MaxRecord-len(b.rest))]...)
		if !ended {
			break
		}
		b.err = b.line(string(b.rest))
		b.rest, data = b.rest[:0], after
	}
	return size, nil
}

// Close says what was wrong.
func (b *Blame) Close() error {
	if b.err == nil && (len(b.rest) > 0 || b.now != nil) {
		return errors.New("the output ends within a line")
	}
	return b.err
}

func (b *Blame) line(text string) error {
	if b.now == nil {
		return b.header(text)
	}
	if content, ok := strings.CutPrefix(text, "\t"); ok {
		b.each(Line{Number: b.number, Commit: b.now, Text: content})
		b.now = nil
		return nil
	}
	name, value, _ := strings.Cut(text, " ")
	switch name {
	case "author":
		b.now.Author = value
	case "author-time":
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("read author-time: %w", err)
		}
		b.now.Date = time.Unix(seconds, 0).UTC()
	case "summary":
		b.now.Summary = value
	}
	return nil
}

func (b *Blame) header(text string) error {
	words := strings.Fields(text)
	if len(words) < 3 {
		return fmt.Errorf("unknown blame: %.80q", text)
	}
	number, err := strconv.Atoi(words[2])
	if err != nil {
		return fmt.Errorf("read a line number: %w", err)
	}
	b.number = number
	if b.now = b.commits[words[0]]; b.now == nil {
		b.now = &BlamedCommit{ID: words[0]}
		b.commits[words[0]] = b.now
	}
	return nil
}
