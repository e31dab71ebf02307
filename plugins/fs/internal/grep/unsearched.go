package grep

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/sdk/display"
)

// reason is why something was not searched.
type reason int

const (
	failed   reason = iota // a directory or its ignore rules cannot be read
	unread                 // a file cannot be read
	tooLarge               // a file is too large to be searched across lines
	longLine               // a line exceeds the maximum length
	turned                 // a file has a zero byte after its head, so the rest is not text
	secret                 // a file usually holds secrets
	reasons
)

const (
	// maxGaps is how many files are kept and named for each reason.
	maxGaps = 3
	// maxGapName is how many bytes of a name are shown.
	maxGapName = 60
)

// gap is something that was not searched.
type gap struct {
	rel  string // relative to the start of the search
	name string
	// note describes the problem if it is not the same for all gaps of the reason.
	note string
	// lines is how many lines were not searched to their end.
	lines int
}

// unsearched collects what a search on several processors has not searched. It keeps the
// first gaps of each reason in the order of paths, so it does not depend on how the work
// was divided.
type unsearched struct {
	mu   sync.Mutex // guards what follows
	gaps [reasons][]gap
	// count is how many there are, lines how many lines of them.
	count, lines [reasons]int
	// partly means that there may be more than were counted.
	partly bool
}

func (u *unsearched) add(why reason, g gap) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count[why]++
	u.lines[why] += g.lines
	gaps := append(u.gaps[why], g)
	slices.SortStableFunc(gaps, func(a, b gap) int { return filetree.Compare(a.rel, b.rel) })
	u.gaps[why] = gaps[:min(len(gaps), maxGaps+1)]
}

// until forgets what follows the last file in the result: whether it was searched is
// chance.
func (u *unsearched) until(rel string) {
	u.partly = true
	for why := range u.gaps {
		u.gaps[why] = slices.DeleteFunc(u.gaps[why], func(g gap) bool { return filetree.Compare(g.rel, rel) > 0 })
		u.count[why], u.lines[why] = len(u.gaps[why]), 0
		for _, g := range u.gaps[why] {
			u.lines[why] += g.lines
		}
	}
}

// notes says which files were not searched, and names a remedy.
func (u *unsearched) notes() *page.Notes {
	n := &page.Notes{}
	for _, g := range u.gaps[failed][:min(len(u.gaps[failed]), maxGaps)] {
		n.Add("%s", g.note)
	}
	if more := u.count[failed] - maxGaps; more > 0 {
		n.Add("and %s like it; search below a narrower path", u.andMore(more))
	}
	if u.count[unread] > 0 {
		n.Add("not searched, since it cannot be read: %s", u.names(unread))
	}
	if u.count[tooLarge] > 0 {
		n.Add("not searched, since multiline is for files up to %d MiB: %s; search without it", search.MaxWhole>>20, u.names(tooLarge))
	}
	if lines := u.lines[longLine]; lines > 0 {
		n.Add("not searched: everything beyond the first %d MiB of %s in %s; read_file with column reads it", search.MaxLine>>20, display.Plural(lines, "line"), u.names(longLine))
	}
	if u.count[turned] > 0 {
		n.Add("not searched from the line on that has a zero byte: %s; it is not all text", u.names(turned))
	}
	return n
}

// leftOut says how many files with secrets were left out, or "".
func (u *unsearched) leftOut() string {
	n := u.count[secret]
	if n == 0 {
		return ""
	}
	text := display.Plural(n, "sensitive file") + " left out"
	if u.partly && n > maxGaps {
		text = "at least " + text
	}
	return text
}

// names counts the files and names the first.
func (u *unsearched) names(why reason) string {
	var names []string
	for _, g := range u.gaps[why][:min(len(u.gaps[why]), maxGaps)] {
		names = append(names, page.Shorten(display.VisibleName(g.name), maxGapName))
	}
	text := strings.Join(names, ", ")
	if more := u.count[why] - len(names); more > 0 {
		text += " and " + u.andMore(more)
	}
	return text
}

func (u *unsearched) andMore(n int) string {
	if u.partly {
		return "more"
	}
	return fmt.Sprintf("%d more", n)
}
