package interpreter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/interp"
)

// The interpreter executes xargs and find -exec itself, so that it can ask about
// each resulting command with its words. It asks about unknown uses as about other
// programs.

// Bounds on the words of one command: their bytes as in GNU xargs, and their
// number, so that the host can judge them.
const (
	maxBuilt = 128 << 10
	maxWords = 15_000
)

// Exit codes of xargs, from its manual.
const (
	someFailed = 123
	oneStopped = 124
	oneKilled  = 125
)

// builder builds commands from words that it reads.
type builder struct {
	command []string
	// separator ends a word. -1 means white space, with quotes and backslashes.
	separator int
	// most is the maximum number of words of one command.
	most int
	// replace is the placeholder for a word; each command then gets one word. If it
	// is "", words are added at the end.
	replace string
	// empty reports whether the command runs once if there are no words.
	empty bool
	// print reports whether find prints the files for which the command succeeds.
	print bool
}

// parseXargs parses the arguments of xargs. ok is false if it does not know them.
func parseXargs(args []string) (b builder, ok bool) {
	b = builder{separator: -1, most: maxWords, empty: true}
	counted := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		option := args[0]
		args = args[1:]
		switch option {
		case "--":
		case "--null":
			option = "-0"
		case "--no-run-if-empty":
			option = "-r"
		default:
			if strings.HasPrefix(option, "--") {
				return b, false
			}
		}
		if option == "--" {
			break
		}
		for letters := option[1:]; letters != ""; {
			letter, value := letters[0], ""
			letters = letters[1:]
			if strings.IndexByte("nIdP", letter) >= 0 {
				if value, letters = letters, ""; value == "" {
					if len(args) == 0 {
						return b, false
					}
					value, args = args[0], args[1:]
				}
			}
			if !b.option(letter, value) {
				return b, false
			}
			counted = counted || letter == 'n'
		}
	}
	if b.command = args; len(args) == 0 {
		b.command = []string{"echo"}
	}
	if b.replace != "" {
		if counted || strings.Contains(b.command[0], b.replace) {
			return b, false
		}
		b.most, b.empty = 1, false
	}
	return b, true
}

// option applies an option and reports whether it is known.
func (b *builder) option(letter byte, value string) bool {
	switch letter {
	case '0':
		b.separator = 0
	case 'r':
		b.empty = false
	case 'P': // number of parallel commands: always one
		n, err := strconv.Atoi(value)
		return err == nil && n >= 0
	case 'n':
		n, err := strconv.Atoi(value)
		b.most = min(n, maxWords)
		return err == nil && n >= 1
	case 'd':
		value = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\x00").Replace(value)
		if len(value) != 1 || value[0] >= utf8.RuneSelf {
			return false
		}
		b.separator = int(value[0])
	case 'I':
		b.replace = value
		return value != ""
	default:
		return false
	}
	return true
}

// parseFind splits find -exec, if that is its last and only action but for -print,
// into a find that prints the files and the command to execute with them.
func parseFind(args []string) (find []string, b builder, ok bool) {
	at, last := slices.Index(args, "-exec"), len(args)-1
	prints := last > 0 && args[last] == "-print" && args[last-1] == ";"
	if prints {
		last--
	}
	if at < 0 || last < at+2 || slices.ContainsFunc(args[1:at], acts) || slices.ContainsFunc(args[at+1:last], acts) {
		return nil, b, false
	}
	b = builder{command: args[at+1 : last], most: 1, replace: "{}", print: prints}
	switch args[last] {
	case ";":
	case "+":
		if args[last-1] != "{}" || last < at+3 {
			return nil, b, false
		}
		b = builder{command: args[at+1 : last-1], most: maxWords}
	default:
		return nil, b, false
	}
	if slices.Contains(b.command, ";") || strings.Contains(b.command[0], "{}") {
		return nil, b, false
	}
	return append(slices.Clone(args[:at]), "-print0"), b, true
}

// acts reports whether a word of find is an action.
func acts(word string) bool {
	return slices.Contains(strings.Fields("-print -print0 -printf -fprint -fprint0 -fprintf -ls -fls -exec -execdir -ok -okdir -delete -quit"), word)
}

// xargs executes xargs.
func (r *runner) xargs(h *interp.HandlerContext, b *builder) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	code := uint8(0)
	err = b.each(h.Stdin, func(words, _ []string) (goOn bool) {
		var none startError
		var status interp.ExitStatus
		err := r.program(h, words, null)
		switch {
		case err == nil:
			return true
		case errors.As(err, &none):
			code = uint8(none.status)
			return false
		case !errors.As(err, &status):
			code = 1
			return false
		case status == 255:
			fmt.Fprintf(h.Stderr, "xargs: %s: exited with status 255; aborting\n", words[0])
			code = oneStopped
			return false
		case status > bySignal:
			code = oneKilled
			return false
		}
		code = someFailed
		return true
	})
	if err != nil {
		fmt.Fprintln(h.Stderr, "xargs:", err)
		code = 1
	}
	return exitStatus(code)
}

// find executes find -exec.
func (r *runner) find(h *interp.HandlerContext, args []string, b *builder) error {
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	found := make(chan error, 1)
	inner := *h
	inner.Stdout = to
	go func() { // ends with find
		defer to.Close()
		found <- r.program(&inner, args, h.Stdin)
	}()
	code := uint8(0)
	err = b.each(from, func(words, files []string) bool {
		err := r.program(h, words, h.Stdin)
		switch {
		case err != nil && b.replace == "":
			code = 1
		case err == nil && b.print:
			fmt.Fprintln(h.Stdout, files[0])
		}
		return true
	})
	_ = from.Close() // ends find if reading its output failed
	if ended := <-found; ended != nil {
		return ended
	}
	if err != nil {
		fmt.Fprintln(h.Stderr, "find:", err)
		code = 1
	}
	return exitStatus(code)
}

func exitStatus(code uint8) error {
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(code)
}

// each calls do with the words of each command, and those of the input that it was
// built from, until do returns false.
func (b *builder) each(input io.Reader, do func(words, from []string) (goOn bool)) error {
	var (
		words []string
		bytes int
		ran   bool
	)
	flush := func() bool {
		built := append(slices.Clone(b.command), words...)
		if b.replace != "" {
			built = slices.Clone(b.command)
			for i := range built[1:] {
				built[i+1] = strings.ReplaceAll(built[i+1], b.replace, words[0])
			}
		}
		from := words
		words, bytes, ran = nil, 0, true
		return do(built, from)
	}
	reader := bufio.NewReader(input)
	for {
		word, err := b.next(reader)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(words) > 0 && bytes+len(word)+1 > maxBuilt && !flush() {
			return nil
		}
		words = append(words, word)
		bytes += len(word) + 1
		if len(words) == b.most && !flush() {
			return nil
		}
	}
	if len(words) > 0 || !ran && b.empty {
		flush()
	}
	return nil
}

// errQuote means input that xargs refuses, too.
var errQuote = errors.New("unmatched quote or too long word; quotes are special to xargs unless you use the -0 option")

// next reads one word. Its error is io.EOF at the end.
func (b *builder) next(reader *bufio.Reader) (string, error) {
	if b.separator >= 0 {
		word, err := reader.ReadString(byte(b.separator))
		if len(word) > maxBuilt {
			return "", errQuote
		}
		if err != nil && (!errors.Is(err, io.EOF) || word == "") {
			return "", err
		}
		return strings.TrimSuffix(word, string(rune(b.separator))), nil
	}
	var word strings.Builder
	quote, begun := byte(0), false
	for {
		c, err := reader.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && quote != 0 {
				err = errQuote
			} else if errors.Is(err, io.EOF) && begun {
				err = nil
			}
			return word.String(), err
		}
		switch {
		case quote != 0 && c == '\n' || word.Len() > maxBuilt:
			return "", errQuote
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == '\\':
			if c, err = reader.ReadByte(); err != nil {
				return "", errQuote
			}
			word.WriteByte(c)
			begun = true
		case b.ends(c) && begun:
			return word.String(), nil
		case b.ends(c), !begun && (c == ' ' || c == '\t'):
		default:
			word.WriteByte(c)
			begun = true
		}
	}
}

// ends reports whether an unquoted character ends a word: white space, or only the
// end of the line if each line is one word.
func (b *builder) ends(c byte) bool {
	return c == '\n' || b.replace == "" && strings.IndexByte(" \t\v\f\r", c) >= 0
}

// built executes args if they are a use of xargs or find that the interpreter
// knows, and reports whether they are.
func (r *runner) built(h *interp.HandlerContext, args []string) (is bool, err error) {
	switch args[0] {
	case "xargs":
		if b, ok := parseXargs(args[1:]); ok {
			r.ask(h, args[:1]) // by itself, it only prints its input
			return true, r.xargs(h, &b)
		}
	case "find":
		if find, b, ok := parseFind(args); ok {
			return true, r.find(h, find, &b)
		}
	}
	return false, nil
}
