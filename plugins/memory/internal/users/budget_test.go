package users

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// taken returns the memory of all users' indexes.
func (s *Set) taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum int64
	for _, u := range s.users {
		sum += u.bytes.Load()
	}
	return sum
}

// The indexes of all users together take no more than the budget.
func TestTheBudgetIsForAllUsers(t *testing.T) {
	dir, s := t.TempDir(), newSet(t)
	users := []string{"ada", "bea", "ida"}
	for _, user := range users {
		for i := range 50 {
			saved(t.Context(), t, s, user, dir, fmt.Sprintf("the painted fence number%d", i))
		}
	}
	found(t.Context(), t, s, "ada", dir, "fence", Keyword)
	one := s.taken()
	for _, user := range users[1:] {
		found(t.Context(), t, s, user, dir, "fence", Keyword)
	}
	if all := s.taken(); all < 3*one-one/2 {
		t.Fatalf("three users take %d, one %d: the test would prove nothing", all, one)
	}
	s.opts.Budget = 2*one + one/2
	for range 2 {
		for _, user := range users {
			if got := found(t.Context(), t, s, user, dir, "number7", Keyword); len(got) != 1 {
				t.Errorf("%s finds %q", user, got)
			}
			if sum := s.taken(); sum > s.opts.Budget {
				t.Errorf("the indexes take %d of %d", sum, s.opts.Budget)
			}
		}
	}
	// The memory of users in use is not freed: the next user searches by words until it is.
	s.opts.Budget = one + one/2
	s.closeUnused(0)
	_, done, err := s.Use(t.Context(), "ada", dir)
	if err != nil {
		t.Fatal(err)
	}
	found(t.Context(), t, s, "ada", dir, "fence", Keyword)
	u, doneToo, err := s.Use(t.Context(), "bea", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer doneToo()
	search := Search{Text: "number7", Mode: Hybrid, Limit: 3, Words: .8, Near: .2, Now: time.Now()}
	all, note, err := u.Search(t.Context(), search)
	if err != nil || len(all) == 0 || !strings.Contains(note, "does not fit into memory") || s.taken() > s.opts.Budget {
		t.Errorf("Search() without room = %d notes, %q, %v; the indexes take %d of %d", len(all), note, err, s.taken(), s.opts.Budget)
	}
	done()
	for deadline := time.Now().Add(time.Minute); ; { // the background may have ada in use for a moment
		all, note, err := u.Search(t.Context(), search)
		if err != nil || len(all) == 0 || time.Now().After(deadline) {
			t.Fatalf("Search() with room again = %d notes, %q, %v", len(all), note, err)
		}
		if note == "" {
			break
		}
	}
}

// An index that grows beyond the budget is given up: notes are saved and found as
// before, by their words.
func TestAnIndexGrowsBeyondTheBudget(t *testing.T) {
	dir, s := t.TempDir(), newSet(t, func(o *Options) { o.Budget = 50_000 })
	for i := range 60 {
		saved(t.Context(), t, s, "ada", dir, fmt.Sprintf("the painted fence number%d", i))
		if got := found(t.Context(), t, s, "ada", dir, fmt.Sprintf("number%d", i), Keyword); len(got) != 1 {
			t.Fatalf("after %d notes %q is found", i+1, got)
		}
		if sum := s.taken(); sum > s.opts.Budget {
			t.Errorf("after %d notes the index takes %d of %d", i+1, sum, s.opts.Budget)
		}
	}
	u, done, err := s.Use(t.Context(), "ada", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if u.Trouble() == "" {
		t.Error("60 notes are within the budget: the test proves nothing")
	}
	all, note, err := u.Search(t.Context(), Search{Text: "number7 fence", Mode: Hybrid, Limit: 3, Words: .8, Near: .2, Now: time.Now()})
	if err != nil || len(all) != 3 || !strings.HasSuffix(all[0].Content, "number7") || !strings.Contains(note, "does not fit into memory") {
		t.Errorf("Search() = %v, %q, %v", all, note, err)
	}
	for _, phrase := range []string{`"number9"`, `"the painted fence number9"`, `number9*`} {
		if only, _, err := u.Search(t.Context(), Search{Text: phrase, Mode: Keyword, Limit: 3, Now: time.Now()}); err != nil || len(only) != 1 {
			t.Errorf("Search(%s) = %v, %v", phrase, only, err)
		}
	}
	if _, _, err := u.Search(t.Context(), Search{Text: "fence", Mode: Vector, Limit: 3, Now: time.Now()}); !errors.Is(err, ErrVectors) {
		t.Errorf("Search() by vectors = %v, want %v", err, ErrVectors)
	}
}
