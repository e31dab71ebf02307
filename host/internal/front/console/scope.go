package console

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// scope is the form for an answer that covers later calls.
type scope struct {
	// Open is set if the form was looked at before.
	Open bool
	// Covers is tool, plugin or path; Path and Commands limit it. MayPath, MayCommand, MayPlugin and
	// MaySession say which fields the call allows.
	Covers, Path, Commands                     string
	MayPath, MayCommand, MayPlugin, MaySession bool
	// Ends is a duration, session, or "" for no end; Uses bounds the calls.
	Ends, Uses string
	// Past is what the scope would have covered; nil if nobody asked, or the caller may not see it.
	Past *past
	// Unseen is set if somebody asked and the caller may not see it.
	Unseen bool
}

// past is what a scope would have covered in the last 30 days.
type past struct {
	// Calls are the calls of the tool or plugin, and More is set if there are more.
	Calls int
	More  bool
	// Examples are what the last of them were about.
	Examples []string
}

const (
	// pastDays and maxPast bound how far back the journal is read.
	pastDays = 30
	maxPast  = 1000
	// maxExamples bounds the examples.
	maxExamples = 5
)

// lasting lists the ends that the form offers.
func lasting() []struct{ Value, Name string } {
	return []struct{ Value, Name string }{{"1h", "for an hour"}, {"8h", "for 8 hours"}, {"168h", "for a week"}, {"", "until revoked"}}
}

// Lasting is [lasting] for templates.
func (s scope) Lasting() []struct{ Value, Name string } { return lasting() }

// askedScope returns the form for a call, as the query has it, and what it would have covered.
func askedScope(v *visit, a httpapi.Approval) *scope {
	if !a.Standing || a.State != approval.Open {
		return nil
	}
	q := v.Form
	if q == nil {
		q = v.URL.Query()
	}
	s := &scope{
		Open: q.Has("covers"), Covers: "tool", Ends: "8h",
		MayPath: len(a.Subject.Paths) > 0, MayCommand: len(a.Subject.Commands) > 0, MayPlugin: a.Subject.Host == "",
		MaySession: auth.SessionEnds(a.Session),
	}
	if s.MayPath {
		s.Path = path.Dir(a.Subject.Paths[0])
	}
	var commands []string
	for _, c := range a.Subject.Commands {
		commands = append(commands, command.Pattern{Words: c.Words}.String())
	}
	s.Commands = strings.Join(commands, "\n")
	if !s.Open {
		return s
	}
	s.Covers, s.Ends, s.Uses = q.Get("covers"), q.Get("ends"), q.Get("uses")
	if q.Get("path") != "" {
		s.Path = q.Get("path")
	}
	if q.Get("commands") != "" {
		s.Commands = q.Get("commands")
	}
	s.look(v, a)
	return s
}

// look counts the calls of the last days in the journal, which admins may read.
func (s *scope) look(v *visit, a httpapi.Approval) {
	if !v.caller.Roles.Has(auth.Admin) {
		s.Unseen = true
		return
	}
	q := journal.Query{User: a.User, Plugin: a.Plugin, Since: time.Now().AddDate(0, 0, -pastDays), Limit: maxPast}
	if s.Covers != "plugin" {
		q.Tool = a.Tool
	}
	rows, err := v.api.Journal(v.Context(), q)
	if err != nil {
		s.Unseen = true
		return
	}
	s.Past = &past{More: len(rows) == maxPast}
	for _, r := range rows {
		if r.Kind != journal.End {
			continue
		}
		s.Past.Calls++
		if r.About != "" && len(s.Past.Examples) < maxExamples && !slices.Contains(s.Past.Examples, r.About) {
			s.Past.Examples = append(s.Past.Examples, r.About)
		}
	}
}

// readScope returns the terms of a form.
func readScope(form url.Values) (*client.Terms, *httpapi.Problem) {
	terms := &client.Terms{Plugin: form.Get("covers") == "plugin"}
	if form.Get("covers") == "path" {
		terms.Path = strings.TrimSpace(form.Get("path"))
		if terms.Path == "" {
			return nil, &httpapi.Problem{Status: http.StatusBadRequest, Title: "The scope has no folder", Detail: "Nothing was decided.", Hint: "write the folder, or choose another scope"}
		}
	}
	for text := range strings.Lines(form.Get("commands")) {
		if text = strings.TrimSpace(text); text != "" {
			terms.Commands = append(terms.Commands, text)
		}
	}
	switch ends := form.Get("ends"); ends {
	case "session":
		terms.Session = true
	default:
		terms.For = ends
	}
	if uses := strings.TrimSpace(form.Get("uses")); uses != "" {
		n, err := strconv.ParseInt(uses, 10, 64)
		if err != nil || n < 1 {
			return nil, &httpapi.Problem{Status: http.StatusBadRequest, Title: "The number of uses is not a number", Detail: "Nothing was decided.", Hint: "write a number from 1, or leave it empty for no bound"}
		}
		terms.Uses = n
	}
	return terms, nil
}
