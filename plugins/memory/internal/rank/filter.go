package rank

import (
	"slices"
	"time"
)

// A Filter says which notes count; the zero value are all but those of
// conversations.
type Filter struct {
	// Conversation includes what was said in conversations.
	Conversation bool
	// Only is the one category that counts, if OnlySet.
	Only    Category
	OnlySet bool
	// Tags are those that a note must have, all of them.
	Tags []string
	// Since and Until bound the time; zero is no bound.
	Since, Until time.Time
	// IDs are the notes that may count; nil is all.
	IDs map[int64]bool
}

// Accepts reports whether a note counts at a time.
func (f *Filter) Accepts(category Category, tags []string, at, expires, now time.Time) bool {
	switch {
	case !expires.IsZero() && !expires.After(now):
		return false
	case category == Conversation && !f.Conversation, f.OnlySet && category != f.Only:
		return false
	case !f.Since.IsZero() && at.Before(f.Since), !f.Until.IsZero() && !at.Before(f.Until):
		return false
	}
	return !slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(tags, tag) })
}

// keep returns a function that says which notes count at a time.
func (x *Index) keep(f Filter, now time.Time) func(place uint32) bool {
	since, until, at := int64(0), int64(0), now.Unix()
	if !f.Since.IsZero() {
		since = f.Since.Unix()
	}
	if !f.Until.IsZero() {
		until = f.Until.Unix()
	}
	tagged := map[uint32]bool{} // lists of tags that have them all
	if len(f.Tags) > 0 {
		for number, list := range x.names.lists {
			if !slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(list, tag) }) {
				tagged[uint32(number)] = true
			}
		}
	}
	return func(place uint32) bool {
		n := &x.notes[place]
		switch {
		case n.removed, n.expires != 0 && n.expires <= at:
			return false
		case n.category == Conversation && !f.Conversation, f.OnlySet && n.category != f.Only:
			return false
		case !f.Since.IsZero() && n.at < since, !f.Until.IsZero() && n.at >= until:
			return false
		case f.IDs != nil && !f.IDs[n.id]:
			return false
		}
		return len(f.Tags) == 0 || tagged[n.tags]
	}
}

// none reports whether every note that was not removed counts, in the
// collections that are searched.
func (f *Filter) none(x *Index, now time.Time) bool {
	return !f.OnlySet && len(f.Tags) == 0 && f.IDs == nil && f.Since.IsZero() && f.Until.IsZero() &&
		(x.firstExpiry == 0 || x.firstExpiry > now.Unix())
}
