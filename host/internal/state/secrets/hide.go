package secrets

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// minHidden is the least length of a value, and of a line of it, that is hidden. A shorter one
	// occurs in any text.
	minHidden = 12
	// maxForms and maxBytes bound what is hidden of one user. What a call received first is forgotten
	// first.
	maxForms = 500
	maxBytes = 2 * MaxValue
	// maxUsers bounds the users whose values are hidden.
	maxUsers = 10_000
)

// hidden are the values that calls have received, by user.
type hidden struct {
	mu     sync.RWMutex // guards byUser and what is in it
	byUser map[string]*ofUser
}

// ofUser are the values of one user.
type ofUser struct {
	forms    []form // the oldest first
	known    map[string]bool
	size     int
	replacer *strings.Replacer
}

// form is a value, or a part of it, as it may occur in a text.
type form struct{ text, name string }

// formsOf returns the forms in which a value may occur: whole, without the space around it, as logs and
// JSON quote it, and line by line, as logs print it.
func formsOf(value string) (forms []string) {
	add := func(text string) {
		if len(text) >= minHidden && !slices.Contains(forms, text) && len(forms) < maxForms/2 {
			forms = append(forms, text)
		}
	}
	for _, text := range []string{value, strings.TrimSpace(value)} {
		add(text)
		quoted := strconv.Quote(text)
		add(quoted[1 : len(quoted)-1])
	}
	for line := range strings.Lines(value) {
		add(strings.TrimSpace(line))
	}
	return forms
}

// add hides a value of a user.
func (h *hidden) add(user, name, value string) {
	h.mu.RLock()
	own := h.byUser[user]
	known := own != nil && own.known[value]
	h.mu.RUnlock()
	if known || len(value) < minHidden {
		return
	}
	forms := formsOf(value)
	h.mu.Lock()
	defer h.mu.Unlock()
	if own = h.byUser[user]; own == nil {
		if len(h.byUser) >= maxUsers {
			clear(h.byUser)
		}
		own = &ofUser{known: make(map[string]bool)}
		h.byUser[user] = own
	}
	for _, text := range forms {
		if !own.known[text] {
			own.known[text] = true
			own.forms, own.size = append(own.forms, form{text, name}), own.size+len(text)
		}
	}
	for len(own.forms) > maxForms || own.size > maxBytes {
		own.size -= len(own.forms[0].text)
		delete(own.known, own.forms[0].text)
		own.forms = own.forms[1:]
	}
	own.replacer = replacerOf(own.forms)
}

// replacerOf returns what replaces forms by the names of their secrets, a value before its lines.
func replacerOf(forms []form) *strings.Replacer {
	longest := slices.Clone(forms)
	slices.SortStableFunc(longest, func(a, b form) int { return len(b.text) - len(a.text) })
	var pairs []string
	for _, f := range longest {
		pairs = append(pairs, f.text, "(secret "+f.name+")")
	}
	return strings.NewReplacer(pairs...)
}

// Hide returns a text of a user's call or process without the values that the user's calls have
// received: the name of the secret stands for a value, so that a reader sees what a user hides. The user
// "" means a process of all users, in which the values of all are hidden.
func (s *Store) Hide(user, text string) string {
	s.hidden.mu.RLock()
	defer s.hidden.mu.RUnlock()
	if user != "" {
		if own := s.hidden.byUser[user]; own != nil {
			return own.replacer.Replace(text)
		}
		return text
	}
	for _, own := range s.hidden.byUser {
		text = own.replacer.Replace(text)
	}
	return text
}
