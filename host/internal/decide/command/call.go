package command

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// call reads a simple command.
func (r *reader) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			r.later("it sets %s for what follows", a.Name.Value)
			r.insideAssign(a)
		}
		return
	}
	words := make([]word, 0, len(c.Args))
	for _, arg := range c.Args {
		words = append(words, r.evaluate(arg))
	}
	first := len(r.line.Segments)
	r.run(words, false)
	for _, a := range c.Assigns {
		if why := r.assignment(words[0], a); why != "" {
			r.line.Segments[first].blame(High, "%s", why)
			r.line.Segments[first].altered = true
		}
		r.insideAssign(a)
	}
	for _, arg := range c.Args {
		r.inside(arg)
	}
}

// assignment returns why a variable may not be set for a program; "" if it may.
func (r *reader) assignment(program word, a *syntax.Assign) string {
	name := a.Name.Value
	if a.Append || a.Index != nil || a.Array != nil {
		return "it sets " + name + " in a way that no program needs"
	}
	value := r.evaluate(a.Value)
	if program.plain && value.static && keepsBlanks(program.text, name, value.text) {
		return ""
	}
	return r.setting(name, value)
}

// setting returns why a variable may not have a value; "" if it may.
func (r *reader) setting(name string, value word) string {
	switch {
	case strings.HasPrefix(name, "GIT_"): // never listed: they name programs and other repositories
		return "it sets " + name + ", which tells git what to do"
	case !slices.Contains(r.opts.Assign, name):
		return "it sets " + name + " for the program"
	case !value.static:
		return "it sets " + name + " to a value that is known only when it runs"
	// A locale or a time zone that names a file is read from it.
	case strings.HasPrefix(value.text, "/"), strings.HasPrefix(value.text, ":"), slices.Contains(strings.Split(value.text, "/"), ".."):
		return "it sets " + name + " to a path"
	case strings.Contains(value.text, "/") && (strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "LANG")):
		return "it sets " + name + " to a path"
	}
	return ""
}

// run adds the segment of a command, and the segments of the commands that it runs.
func (r *reader) run(words []word, maybe bool) {
	switch {
	case len(words) == 0:
		return
	case r.depth > maxDepth:
		r.tooDeep(strings.Join(texts(words), " "))
		return
	}
	s := Segment{Argv: texts(words), Words: known(words), Maybe: maybe, Literal: allStatic(words) && words[0].plain, fed: r.fed}
	program := words[0]
	if program.static {
		s.Name = nameOf(program.text)
		if why := evaluates(s.Name, words); why != "" && !maybe {
			r.line.unread(High, "%s", why)
		}
	}
	switch {
	case !program.static:
		s.blame(High, "which program it runs is known only when it runs")
	case !program.plain:
		s.blame(High, "the program's name is quoted or escaped")
	case strings.Contains(program.text, "/"):
		s.fear(High, "it runs a file by its path")
	}
	for _, w := range words[1:] {
		s.Files = append(s.Files, filesIn(w)...)
	}
	inner := r.unwrap(&s, words)
	expected := r.expected(words)
	if !s.Transparent {
		r.judge(&s, expected)
	}
	if runsInput(s.Name, words) {
		s.blame(High, "%s runs what it reads", s.Name)
	}
	s.Bulk = r.bulk(&s, expected)
	r.forbid(&s, words)
	if (s.Name == "cd" || s.Name == "pushd") && len(words) > 1 {
		r.line.Directories = append(r.line.Directories, words[len(words)-1].text)
	}
	r.add(s)
	r.depth++
	inner()
	r.depth--
}

// filesIn returns the parts of a word that may name files.
func filesIn(w word) []string {
	if w.text == "" || w.pipe {
		return nil
	}
	files := []string{w.text}
	if _, value, ok := strings.Cut(w.text, "="); ok && value != "" {
		files = append(files, value)
	}
	if strings.HasPrefix(w.text, "-") && len(w.text) > 2 {
		files = append(files, w.text[2:])
	}
	if strings.HasPrefix(w.text, "@") && len(w.text) > 1 {
		files = append(files, w.text[1:])
	}
	return files
}

// path blames a segment for a word that may name a file outside of the workspace.
func (r *reader) path(s *Segment, w word) {
	switch {
	case w.pipe, w.static && (w.text == "" || w.text == "-"):
	case !w.static:
		s.blame(High, "%s is known only when it runs", w.text)
	default:
		if risk, why := r.outside(w.text); why != "" {
			s.blame(risk, "%s", why)
		}
	}
}

// outside returns why a path may not be read without asking; "" if it may.
func (r *reader) outside(name string) (Risk, string) {
	if name == "/dev/null" || name == "/dev/stdin" {
		return Low, ""
	}
	inside := name
	if strings.HasPrefix(name, "/") {
		var ok bool
		if inside, ok = strings.CutPrefix(path.Clean(name), r.opts.Workspace+"/"); !ok && path.Clean(name) != r.opts.Workspace || r.opts.Workspace == "" {
			return High, name + " is outside of the workspace"
		}
	}
	parts := strings.Split(inside, "/")
	switch {
	case slices.Contains(parts, ".."):
		return High, name + " may lead out of the workspace"
	case slices.Contains(parts, ".git"):
		return Medium, name + " is git's own"
	}
	return Low, ""
}

// device reports whether a path is a disk.
func device(name string) bool { return disks().MatchString(path.Clean(name)) }

var disks = lazyregexp.New(`^/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/|dm-|md|loop|sr|nbd|ram|zram)`)

// forbid marks the line if the command must never run.
func (r *reader) forbid(s *Segment, words []word) {
	switch {
	case s.Name == "rm":
		if target := r.wipes(words); target != "" {
			r.line.Forbidden = "it removes everything in " + target
		}
	case s.Name == "dd":
		for _, w := range words[1:] {
			if file, ok := strings.CutPrefix(w.text, "of="); ok && device(file) {
				r.line.Forbidden = "it writes to the device " + file
			}
		}
	case s.Name == "mkfs" || strings.HasPrefix(s.Name, "mkfs.") || writesDevices[s.Name]:
		for _, w := range words[1:] {
			if device(w.text) {
				r.line.Forbidden = "it writes to the device " + w.text
			}
		}
	}
}

var writesDevices = map[string]bool{"mv": true, "install": true, "tee": true, "wipefs": true, "shred": true, "cp": true, "mkswap": true, "blkdiscard": true}

// wipes returns the target of a recursive rm that removes too much; "" if it has none.
func (r *reader) wipes(words []word) string {
	recursive, target, ended := false, "", false
	for _, w := range words[1:] {
		switch text := w.text; {
		case !ended && text == "--":
			ended = true
		case !ended && strings.HasPrefix(text, "--"):
			recursive = recursive || text != "--" && strings.HasPrefix("--recursive", text)
		case !ended && strings.HasPrefix(text, "-") && len(text) > 1:
			recursive = recursive || strings.ContainsAny(text, "rR")
		default:
			if r.everything(text) {
				target = text
			}
		}
	}
	if !recursive {
		return ""
	}
	return target
}

// everything reports whether a path is the root, a home, the current directory or a parent of it,
// the workspace or a parent of it, or everything in one of these.
func (r *reader) everything(name string) bool {
	name = strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(name)
	all := strings.TrimRight(name, "*?") // everything in it
	if all != name && all != "" && !strings.HasSuffix(all, "/") {
		return false
	}
	if all == "" {
		return strings.Contains(name, "*")
	}
	for _, home := range []string{"$HOME", "${HOME}", "$PWD", "${PWD}"} {
		if rest, ok := strings.CutPrefix(all, home); ok {
			all = "." + rest
		}
	}
	clean := path.Clean(all)
	switch {
	case strings.HasPrefix(all, "~"):
		return !strings.Contains(clean, "/") // of this user or of another
	case strings.Trim(clean, "./") == "": // "/", ".", "..", "../.."
		return true
	}
	return r.opts.Workspace != "" && (clean == r.opts.Workspace || strings.HasPrefix(r.opts.Workspace, clean+"/"))
}

// maxDescriptor bounds the digits of a descriptor.
const maxDescriptor = 4

// redirects reads the redirections of a statement. They belong to the last segment that was added
// since first, or to the line.
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
		case len(redirect.N.Value) > maxDescriptor: // bash reads it as an argument
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

// redirect returns what is wrong with one redirection, and the file that it names.
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
