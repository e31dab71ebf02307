package porcelain

import "strings"

// CommitFormat makes git write what [NewCommits] reads, together with -z.
const CommitFormat = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%cI%x00%B%x00"

// commitFields are those of CommitFormat.
const commitFields = 8

// Commit is one commit of a log.
type Commit struct {
	ID          string
	Parents     []string
	Author      string
	Email       string
	Date        string // of the author, ISO 8601
	Committer   string
	CommitDate  string
	Message     string // without line breaks at its end
	Subject     string // its first paragraph, as one line
	MessageBody string // what comes after that
}

// NewCommits returns what calls each with every commit of a log in CommitFormat.
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
	c := Commit{
		ID: f[0], Parents: strings.Fields(f[1]), Author: f[2], Email: f[3], Date: f[4], Committer: f[5], CommitDate: f[6],
		Message: strings.TrimRight(f[7], "\n"),
	}
	subject, body, _ := strings.Cut(c.Message, "\n\n")
	c.Subject, c.MessageBody = strings.Join(strings.Split(subject, "\n"), " "), strings.Trim(body, "\n")
	return c
}
