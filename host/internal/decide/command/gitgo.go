package command

import "strings"

// git checks git: its own options, its command, and the options of that.
func (r *reader) git(s *Segment, words []word) {
	rest := words
	for len(rest) > 0 && rest[0].static && strings.HasPrefix(rest[0].text, "-") {
		switch {
		case rest[0].text == "-C" && len(rest) > 1:
			r.path(s, rest[1])
			s.Dirs = append(s.Dirs, rest[1].text)
			rest = rest[2:]
		case rest[0].text == "--no-pager" || rest[0].text == "--no-optional-locks" || rest[0].text == "--literal-pathspecs":
			rest = rest[1:]
		default:
			s.blame(High, "the option %s of git is not known to be harmless", rest[0].text)
			s.Known, s.Loose = false, true
			return
		}
	}
	if len(rest) == 0 || !rest[0].static {
		s.blame(High, "git without a command that is known")
		return
	}
	s.Words = append(s.Words[:1:1], known(rest)...)
	name := rest[0].text
	s.Patches = patches(s.Words[1:])
	p, looks := gits[name]
	switch {
	case looks:
		r.uses(s, p, rest[1:])
		for _, w := range rest[1:] {
			if strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "%G") {
				s.blame(High, "%s runs a program that checks signatures", w.text)
			}
		}
	case gitMedium[name]:
		s.Known = false
		s.fear(Medium, "git %s changes the repository", name)
	default:
		s.Known = false
		s.fear(High, "git %s may send away, execute or remove", name)
	}
}

// golang checks the go command.
func (r *reader) golang(s *Segment, words []word) {
	if len(words) == 0 || !words[0].static {
		s.blame(High, "go without a command that is known")
		return
	}
	name := words[0].text
	p, harmless := gos[name]
	switch {
	case harmless:
		r.uses(s, p, words[1:])
		for _, w := range words[1:] {
			if strings.Contains(w.text, "@") {
				s.blame(High, "%s may be fetched", w.text)
			}
		}
	case goMedium[name]:
		s.Known = false
		s.fear(Medium, "go %s changes files", name)
	default:
		s.Known = false
		s.fear(High, "go %s may execute or fetch anything", name)
	}
}
