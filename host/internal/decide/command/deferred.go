package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ParseDeferred reads a line that is executed by its tree, part by part. Words that are known only
// at run time are judged then, part by part, with their final values. All other parts must only
// read: a refused part ends the line after the parts before it have run.
func ParseDeferred(text string, opts Options) *Line {
	line := &Line{text: text, Deferred: true}
	r := &reader{opts: opts, line: line}
	r.read(text, 0)
	r.settle()
	if len(line.Segments) == 0 {
		line.problem(Medium, "it holds no command")
	}
	if why := line.changes(); why != "" {
		line.problem(High, "it has parts that are known only when they run, and %s", why)
	}
	return line
}

// setIn returns the variables that a line sets before it can use them, and those that every shell
// sets.
func setIn(file *syntax.File) map[string]bool {
	names := set("? # @ * 1 2 3 4 5 6 7 8 9 PWD OLDPWD")
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				names[n.Name.Value] = true
			}
		case *syntax.WordIter:
			if n.Name != nil {
				names[n.Name.Value] = true
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == "read" {
				for _, w := range n.Args[1:] {
					names[w.Lit()] = true
				}
			}
		}
		return true
	})
	return names
}

// changes returns a part of the line that does more than read; "" if there is none.
func (l *Line) changes() string {
	for i := range l.Segments {
		s := &l.Segments[i]
		if s.Risk > Low || !s.Known && !s.Transparent && !s.Maybe {
			return s.Argv[0] + " is not known to do no more than read"
		}
	}
	for _, name := range l.Writes {
		if name != "/dev/null" {
			return "it writes the file " + name
		}
	}
	return ""
}

// expected returns the words by which a command is judged before it runs. In a deferred line a word
// that is known only at run time counts as a harmless one: "0" is a number, a text and a file in
// the directory.
func (r *reader) expected(words []word) []word {
	if !r.line.Deferred || allStatic(words[1:]) {
		return words
	}
	words = slices.Clone(words)
	for i := range words[1:] {
		w := &words[i+1]
		if w.static || w.pipe || strings.HasPrefix(w.text, "~") {
			continue
		}
		if risk, _ := r.outside(w.text); risk == Low {
			*w = word{text: "0", static: true, plain: true, whole: true}
		}
	}
	return words
}

// unbuilt returns the words of find before -exec if that is its last and only action but for
// -print, which the executor of the tree then judges; otherwise all words.
func unbuilt(words []word) []word {
	at, last := slices.IndexFunc(words, executes), len(words)-1
	if last > 0 && words[last].static && words[last].text == "-print" && words[last-1].text == ";" {
		last--
	}
	acts := func(w word) bool {
		return !w.static || executes(w) || strings.HasPrefix(w.text, "-print") || w.text == "-ls" || w.text == "-quit"
	}
	if at < 0 || words[at].text != "-exec" || slices.ContainsFunc(words[:at], acts) || words[last].text != ";" && words[last].text != "+" {
		return words
	}
	if slices.ContainsFunc(words[at+1:last], func(w word) bool { return executes(w) || w.text == ";" }) {
		return words
	}
	return words[:at]
}

// buildsKnown reports whether each command that a program with these options builds is judged when
// it is executed.
func (r *reader) buildsKnown(name string, options []word) bool {
	p := programs[name]
	return r.line.Deferred && r.depth == 0 && p.split(options).unknown == "" // another program would execute it
}

// later adds a problem that only the execution can settle. A deferred line leaves it until then.
func (r *reader) later(why string, args ...any) {
	if !r.line.Deferred {
		r.line.problem(High, why, args...)
	}
}
