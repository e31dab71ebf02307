package porcelain

import "strings"

// CommitFormat is the option of git log that, with -z, writes what [NewCommits] parses.
const CommitFormat = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%B%x00"

// commitFields is the number of fields in CommitFormat.
const commitFields = 7

// Commit is one commit of a log.
type Commit struct {
	ID          string
	Parents     []string
	Author      string
	Email       string
	Date        string // of the author, ISO 8601
	Committer   string
	Subject     string // the first paragraph of the message, as one line
	MessageBody string // the message after the subject
}

// NewCommits returns a parser that calls each for every commit of a log in CommitFormat.
func NewCommits(each func(Commit) error) *Records {
	var f []string
	return NewRecords(func(record []byte) error {
		if len(f) < commitFields {
			f = append(f, string(record))
			return nil
		}
		c := commit(f) // this record is the empty one of -z
		f = f[:0]
		return each(c)
	})
}

func commit(f []string) Commit {
	subject, body, _ := strings.Cut(strings.TrimRight(f[6], "\n"), "\n\n")
	return Commit{
		ID: f[0], Parents: strings.Fields(f[1]), Author: f[2], Email: f[3], Date: f[4], Committer: f[5],
		Subject: strings.ReplaceAll(subject, "\n", " "), MessageBody: strings.Trim(body, "\n"),
	}
}
