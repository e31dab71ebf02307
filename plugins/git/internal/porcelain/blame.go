package porcelain

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Line is a line of a file and its commit.
type Line struct {
	Number int
	Commit *BlamedCommit
	Text   string
}

// BlamedCommit is a commit in the output of git blame.
type BlamedCommit struct {
	ID, Author, Summary string
	Date                time.Time
}

// Blame parses the output of git blame --porcelain. In it, the lines of the file start
// with a tab. Blame cuts lines that are longer than MaxRecord.
type Blame struct {
	each    func(Line)
	rest    []byte
	commits map[string]*BlamedCommit
	now     *BlamedCommit // the commit of the next line
	number  int
	err     error
}

// NewBlame returns a parser that calls each for every line.
func NewBlame(each func(Line)) *Blame {
	return &Blame{each: each, commits: map[string]*BlamedCommit{}}
}

// Write parses the next part of the output. It always succeeds; Close returns the error.
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

// Close returns the first error of Write, or an error if the output is incomplete.
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
