package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// conversation is one line of the data.
type conversation struct {
	User  string            `json:"user"`
	Dates map[string]string `json:"dates"`
	Turns []struct {
		ID      string `json:"id"`
		Speaker string `json:"s"`
		Text    string `json:"x"`
		Caption string `json:"img"`
	} `json:"turns"`
	Questions []question `json:"qa"`
}

// question is a question and the turns that answer it.
type question struct {
	Text     string   `json:"q"`
	Evidence []string `json:"ev"`
	Category int      `json:"c"`
}

// adversarial questions have no answer.
const adversarial = 5

// read reads the data.
func read(path string) ([]conversation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	var all []conversation
	for lines := json.NewDecoder(r); ; {
		var c conversation
		if err := lines.Decode(&c); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, c)
	}
}

// notes returns the turns of a conversation as notes.
func (c *conversation) notes() []note {
	var all []note
	for i, t := range c.Turns {
		session, _, _ := strings.Cut(strings.TrimPrefix(t.ID, "D"), ":")
		text := t.Speaker + ": " + t.Text
		if t.Caption != "" {
			text += " [shares " + t.Caption + "]"
		}
		all = append(all, note{ID: t.ID, Text: text, Source: t.Speaker, Session: session, Seq: i, Time: c.Dates[session]})
	}
	return all
}

// measure saves all turns, asks all questions in every way, and prints figures.
func measure(ctx context.Context, h *hosts, all []conversation, out io.Writer) error {
	turns, began := 0, time.Now()
	for i := range all {
		u, err := h.user(ctx, all[i].User)
		if err != nil {
			return err
		}
		for _, n := range all[i].notes() {
			if err := u.save(ctx, n); err != nil {
				return err
			}
			turns++
		}
	}
	fmt.Fprintf(out, "%d turns of %d conversations saved, %.2f ms each\n\n", turns, len(all), time.Since(began).Seconds()*1e3/float64(turns))
	fmt.Fprintf(out, "%-9s %-11s %5s %6s %6s %6s %9s\n", "search", "questions", "n", "R@5", "R@20", "MRR", "ms each")
	for _, misspelled := range []bool{false, true} {
		for _, mode := range []string{"vector", "keyword", "hybrid"} {
			s, err := ask(ctx, h, all, mode, misspelled)
			if err != nil {
				return err
			}
			kind := "clean"
			if misspelled {
				kind = "misspelled"
			}
			n := max(s.n, 1)
			fmt.Fprintf(out, "%-9s %-11s %5.0f %6.3f %6.3f %6.3f %9.2f\n", mode, kind, s.n, s.r5/n, s.r20/n, s.mrr/n, s.took.Seconds()*1e3/n)
		}
	}
	return nil
}

// score adds up how well questions were answered.
type score struct {
	n, r5, r20, mrr float64
	took            time.Duration
}

func ask(ctx context.Context, h *hosts, all []conversation, mode string, misspelled bool) (score, error) {
	var s score
	random := rand.New(rand.NewPCG(1, 1))
	for i := range all {
		u, err := h.user(ctx, all[i].User)
		if err != nil {
			return s, err
		}
		for _, q := range all[i].Questions {
			if q.Category == adversarial {
				continue
			}
			text := q.Text
			if misspelled {
				text = misspell(text, random)
			}
			began := time.Now()
			found, err := u.search(ctx, text, mode, 20)
			if err != nil {
				return s, err
			}
			s.took += time.Since(began)
			s.add(found, q.Evidence)
		}
	}
	return s, nil
}

// add counts one question: the share of its evidence among the first 5 and 20 notes, and the
// rank of the first one.
func (s *score) add(found, evidence []string) {
	s.n++
	first := true
	for i, id := range found {
		if !slices.Contains(evidence, id) {
			continue
		}
		if i < 5 {
			s.r5 += 1 / float64(len(evidence))
		}
		s.r20 += 1 / float64(len(evidence))
		if first {
			s.mrr += 1 / float64(i+1)
			first = false
		}
	}
}

// misspell makes a mistake in about half of the long words that are not names: two letters
// swapped, one left out, or another one.
func misspell(text string, random *rand.Rand) string {
	words := strings.Fields(text)
	for i, word := range words {
		if len(word) < 5 || word[0] >= 'A' && word[0] <= 'Z' || random.IntN(2) == 0 {
			continue
		}
		letters := []byte(word)
		at := 1 + random.IntN(len(letters)-2)
		switch random.IntN(3) {
		case 0:
			letters[at], letters[at+1] = letters[at+1], letters[at]
		case 1:
			letters = slices.Delete(letters, at, at+1)
		default:
			letters[at] = byte('a' + random.IntN(26))
		}
		words[i] = string(letters)
	}
	return strings.Join(words, " ")
}
