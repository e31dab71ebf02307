package rank

import (
	"slices"
	"time"
)

// A Filter selects notes. The zero value selects all notes except conversations.
type Filter struct {
	// Conversation includes notes of the category Conversation.
	Conversation bool
	// Only is the one category to select, if OnlySet.
	Only    Category
	OnlySet bool
	// Tags must all be among a note's tags.
	Tags []string
	// Since and Until bound the time of a note: Since is included, Until is not.
	// The zero time is no bound.
	Since, Until time.Time
	// IDs are the notes to select from; nil means all.
	IDs map[int64]bool
}

// Accepts reports whether the filter selects a note. Expired notes are never
// selected.
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

// keep returns a function that reports whether the filter selects a note.
func (x *Index) keep(f Filter, now time.Time) func(place uint32) bool {
	since, until, at := int64(0), int64(0), now.Unix()
	if !f.Since.IsZero() {
		since = f.Since.Unix()
	}
	if !f.Until.IsZero() {
		until = f.Until.Unix()
	}
	tagged := map[uint32]bool{} // numbers of the tag lists with all tags of the filter
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

// none reports whether the filter selects every note in the collections that are
// searched, apart from removed notes.
func (f *Filter) none(x *Index, now time.Time) bool {
	return !f.OnlySet && len(f.Tags) == 0 && f.IDs == nil && f.Since.IsZero() && f.Until.IsZero() &&
		(x.firstExpiry == 0 || x.firstExpiry > now.Unix())
}
