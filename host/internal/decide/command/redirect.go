package command

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxDescriptor bounds the digits of a descriptor.
const maxDescriptor = 4

// redirects reads where input comes from and output goes. They are the last segment's
// that was added since first, or the line's own.
func (r *reader) redirects(s *syntax.Stmt, first int) {
	for _, redirect := range s.Redirs {
		risk, why, file := r.redirect(redirect)
		r.inside(redirect.Word)
		r.inside(redirect.Hdoc)
		if file != "" && redirect.Op != syntax.RdrIn {
			r.line.Writes = append(r.line.Writes, file)
		}
		switch {
		case redirect.N == nil:
		case strings.HasPrefix(redirect.N.Value, "{"):
			risk, why = High, "it sets a variable to a descriptor"
		case len(redirect.N.Value) > maxDescriptor: // bash takes it for an argument
			risk, why = High, "the descriptor "+redirect.N.Value+" is too large"
		}
		if len(r.line.Segments) == first {
			if file != "" {
				r.line.Files = append(r.line.Files, file)
			}
			if why == "" {
				risk, why = Medium, "a redirection without a command"
			}
			r.line.problem(risk, "%s", why)
			continue
		}
		segment := &r.line.Segments[first]
		if file != "" {
			segment.Files = append(segment.Files, file)
		}
		if why != "" {
			segment.blame(risk, "%s", why)
			segment.altered = true
		}
	}
}

// feeds reports whether a redirection gives a command something to read.
func feeds(redirect *syntax.Redirect) bool {
	switch redirect.Op { //nolint:exhaustive // the others are for output
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	}
	return false
}

// redirect says what is wrong with one redirection, and which file it names.
func (r *reader) redirect(redirect *syntax.Redirect) (risk Risk, why, file string) {
	target := r.evaluate(redirect.Word)
	switch redirect.Op { //nolint:exhaustive // the others name a file
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return Low, "", ""
	case syntax.DplIn, syntax.DplOut:
		if target.static && (target.text == "-" || digits(strings.TrimSuffix(target.text, "-"))) {
			return Low, "", ""
		}
	}
	switch {
	case target.pipe:
		return Low, "", ""
	case strings.HasPrefix(target.text, "/dev/tcp/"), strings.HasPrefix(target.text, "/dev/udp/"):
		return High, "it opens a connection (" + target.text + ")", target.text
	case redirect.Op == syntax.RdrIn:
		if !target.static {
			if r.line.Deferred {
				return Low, "", ""
			}
			return High, "it reads a file that is known only when it runs", target.text
		}
		risk, why = r.outside(target.text)
		return risk, why, target.text
	case !target.static:
		return Medium, "it writes a file that is known only when it runs", target.text
	case slices.Contains(r.opts.WriteRedirects, target.text):
		if !path.IsAbs(target.text) {
			r.line.relative = target.text
		}
		return Low, "", target.text
	}
	if device(target.text) {
		r.line.Forbidden = "it writes to the device " + target.text
		return High, r.line.Forbidden, target.text
	}
	return Medium, "it writes the file " + target.text, target.text
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
