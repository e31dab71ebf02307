package schema

import (
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// commandLine returns the words of a command as one command line, for clients that send a list of
// words where a tool takes a line. A shell reads exactly these words from the line: it expands
// nothing. It is false for an empty list, an item that is not a text, and a word with a control
// character other than a tab or a newline.
func commandLine(value any) (line string, ok bool) {
	items, _ := value.([]any)
	quoted := make([]string, len(items))
	for i, item := range items {
		word, isString := item.(string)
		if !isString || strings.ContainsFunc(word, unprintable) {
			return "", false
		}
		quoted[i] = word
		if !plainWord().MatchString(word) || i == 0 && slices.Contains(reservedWords, word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " "), len(items) > 0
}

// plainWord matches words that mean the same to a shell with and without quotes.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_./:,@+-]+$`)

// reservedWords are the words that begin something other than a plain command.
var reservedWords = []string{
	"case", "coproc", "declare", "do", "done", "elif", "else", "esac", "export", "fi", "for", "function", "if", "let", "local",
	"nameref", "readonly", "select", "then", "time", "typeset", "until", "while",
}

func unprintable(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }
