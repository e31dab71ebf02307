package dfa

import "regexp/syntax"

// kind is the purpose of a program.
type kind uint8

const (
	byLine   kind = iota // any match within a line, which is a separate text
	leftmost             // the end of the match that package regexp finds
	longest              // the end of the longest match that begins at once
)

// program is an expression for one direction and purpose.
type program struct {
	*classes
	kind  kind
	inst  []syntax.Inst
	start int32
	// accepts has, for each class, a bit for each instruction that matches it.
	accepts [][]uint64
	// relevant is the part of a context that the program distinguishes.
	relevant context
	// words means that the program has [noWordBefore] and [noWordAfter].
	words bool
}

func newProgram(compiled *syntax.Prog, k kind, words bool) *program {
	p := &program{kind: k, inst: compiled.Inst, classes: newClasses(compiled.Inst, words), words: words}
	p.start = p.skip(uint32(compiled.Start))
	p.relevant = ended | found
	for i := range p.inst {
		in := &p.inst[i]
		if in.Op != syntax.InstFail && in.Op != syntax.InstMatch {
			in.Out = uint32(p.skip(in.Out))
		}
		if in.Op == syntax.InstAlt || in.Op == syntax.InstAltMatch {
			in.Arg = uint32(p.skip(in.Arg))
		}
		if in.Op == syntax.InstEmptyWidth {
			p.relevant |= asked(syntax.EmptyOp(in.Arg))
		}
	}
	p.accepts = make([][]uint64, len(p.samples))
	for class, r := range p.samples {
		p.accepts[class] = make([]uint64, len(p.inst)/64+1)
		for i := range p.inst {
			if matchesRune(&p.inst[i]) && p.inst[i].MatchRune(r) {
				p.accepts[class][i/64] |= 1 << (i % 64)
			}
		}
	}
	return p
}

// skip returns the next instruction that has an effect.
func (p *program) skip(at uint32) int32 {
	for p.inst[at].Op == syntax.InstNop || p.inst[at].Op == syntax.InstCapture {
		at = p.inst[at].Out
	}
	return int32(at)
}

// context is what is known about the surroundings of a place.
type context uint8

const (
	afterText    context = 1 << iota // nothing is before it
	afterLine                        // a line end is
	afterWord                        // a character of a word is, in ASCII
	afterAnyWord                     // one of any script is; only if that matters
	// ended says that a match ends before the last character.
	ended
	// found says that a match has ended already: others that begin later are of
	// no interest.
	found
)

// asked returns the part of a context that an assertion needs.
func asked(op syntax.EmptyOp) context {
	switch op {
	case syntax.EmptyBeginText:
		return afterText
	case syntax.EmptyBeginLine:
		return afterText | afterLine
	case syntax.EmptyWordBoundary, syntax.EmptyNoWordBoundary:
		return afterWord
	case noWordBefore:
		return afterAnyWord
	case noWordAfter, syntax.EmptyEndLine, syntax.EmptyEndText:
	}
	return 0
}

// ways is a set of ways through the program: the instructions they have reached, the
// preferred one first.
type ways struct {
	context context
	at      []int32
}

// key returns a different key for different ways.
func (w ways) key(buf []byte) []byte {
	buf = append(buf[:0], byte(w.context))
	for _, at := range w.at {
		buf = append(buf, byte(at), byte(at>>8), byte(at>>16))
	}
	return buf
}
