package dfa

import "regexp/syntax"

// stepper advances by one character. It is for one goroutine.
type stepper struct {
	*program
	stack []int32
	// seen and reached are sets of instructions: those with the value of round.
	seen, reached []uint32
	round         uint32
}

func newStepper(p *program) *stepper {
	return &stepper{program: p, seen: make([]uint32, len(p.inst)), reached: make([]uint32, len(p.inst))}
}

// begin returns the ways at a place after the given context.
func (s *stepper) begin(c context) ways {
	w := ways{context: c & s.relevant}
	if s.kind == longest {
		w.at = []int32{s.start}
	}
	return w
}

// step returns the ways after a character of the class. It stores them in into.
func (s *stepper) step(w ways, class uint16, into []int32) ways {
	next := ways{context: w.context & found, at: into[:0]}
	var char rune = -1
	if class < s.end {
		char = s.samples[class]
	}
	if s.kind == byLine && char == '\r' && s.follow(w, s.allowed(w.context, -1), s.end, nil) {
		// The character may belong to the end of the line, which is not known yet: the caller
		// checks again.
		next.context |= ended
		return next
	}
	if s.kind == byLine && char == '\n' {
		class, char = s.end, -1
		next.context |= afterText
	}
	if s.follow(w, s.allowed(w.context, char), class, &next.at) {
		next.context |= ended
		if s.kind != longest {
			next.context |= found
		}
	}
	if char >= 0 {
		next.context |= s.contextAfter(char)
	}
	next.context &= s.relevant
	return next
}

// allowed returns the assertions that hold between the context and a character; -1 is the
// end of the text.
func (s *stepper) allowed(c context, char rune) syntax.EmptyOp {
	var allowed syntax.EmptyOp
	if c&afterText != 0 {
		allowed |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	if c&afterLine != 0 {
		allowed |= syntax.EmptyBeginLine
	}
	if char == -1 {
		allowed |= syntax.EmptyEndText | syntax.EmptyEndLine
	}
	if char == '\n' {
		allowed |= syntax.EmptyEndLine
	}
	if c&afterAnyWord == 0 {
		allowed |= noWordBefore
	}
	if !s.words || !isAnyWord(char) {
		allowed |= noWordAfter
	}
	if (c&afterWord != 0) != syntax.IsWordChar(char) {
		return allowed | syntax.EmptyWordBoundary
	}
	return allowed | syntax.EmptyNoWordBoundary
}

// endsHere reports whether a match ends here, whatever follows.
func (s *stepper) endsHere(w ways) bool {
	const known = syntax.EmptyBeginText | syntax.EmptyBeginLine | noWordBefore
	return s.follow(w, s.allowed(w.context, -1)&known, s.end, nil)
}

// follow advances all ways over a character and appends the ways after it. It reports
// whether a match ends before the character.
func (s *stepper) follow(w ways, allowed syntax.EmptyOp, class uint16, to *[]int32) bool {
	if s.round++; s.round == 0 {
		clear(s.seen)
		clear(s.reached)
		s.round = 1
	}
	match := false
	for _, at := range w.at {
		if s.followOne(at, allowed, class, to) {
			if match = true; s.kind != longest {
				return true // later matches are not preferred
			}
		}
	}
	if s.kind != longest && w.context&found == 0 {
		match = s.followOne(s.start, allowed, class, to)
	}
	return match
}

func (s *stepper) followOne(at int32, allowed syntax.EmptyOp, class uint16, to *[]int32) bool {
	match := false
	s.stack = append(s.stack[:0], at)
	for len(s.stack) > 0 {
		at := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		if s.seen[at] == s.round {
			continue
		}
		s.seen[at] = s.round
		switch in := &s.inst[at]; in.Op {
		case syntax.InstMatch:
			if match = true; s.kind != longest {
				return true
			}
		case syntax.InstAlt, syntax.InstAltMatch:
			s.stack = append(s.stack, int32(in.Arg), int32(in.Out))
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^allowed == 0 {
				s.stack = append(s.stack, int32(in.Out))
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if class < s.end && s.accepts[class][at/64]&(1<<(at%64)) != 0 && s.reached[in.Out] != s.round {
				s.reached[in.Out] = s.round
				*to = append(*to, int32(in.Out))
			}
		case syntax.InstFail, syntax.InstCapture, syntax.InstNop:
		}
	}
	return match
}
