package patch

import (
	"io/fs"
	"strconv"
	"strings"
)

// gitFile parses the diff of a file that begins with "diff --git".
func (r *reader) gitFile() error {
	f := File{Line: r.number(), Operation: Update}
	old, renamed := headerNames(strings.TrimPrefix(r.line(), "diff --git "))
	r.at++
	if err := r.extendedHeader(&f, &old, &renamed); err != nil {
		return err
	}
	if r.atNames() {
		number := r.number()
		from, to, err := r.names()
		if err != nil {
			return err
		}
		if err := f.takeNames(number, from, to, &old, &renamed); err != nil {
			return err
		}
		if !strings.HasPrefix(r.line(), "@@") {
			return r.wrong("expected a hunk, which begins with @@")
		}
	}
	if err := r.unifiedHunks(&f); err != nil {
		return err
	}
	if f.Operation != Create {
		f.Old = old
	}
	if f.Operation != Delete {
		f.New = renamed
	}
	if f.Old == "" && f.Operation != Create || f.New == "" && f.Operation != Delete {
		return wrongAt(f.Line, "the names of the file are not clear")
	}
	return r.add(f)
}

// takeNames checks the names before the hunks against those of the header, as far as the
// header was clear.
func (f *File) takeNames(number int, from, to string, old, renamed *string) error {
	if from == "" && f.Operation == Update {
		f.Operation = Create
	}
	if to == "" && f.Operation == Update {
		f.Operation = Delete
	}
	for _, name := range []struct {
		given string
		known *string
	}{{from, old}, {to, renamed}} {
		switch {
		case name.given == "" || same(name.given, *name.known): // "" is /dev/null
		case *name.known == "":
			*name.known = name.given
		default:
			return wrongAt(number, "the name %q is not that of the lines before, %q", name.given, *name.known)
		}
	}
	return nil
}

// same reports whether a name equals the one in the header, which may still have its
// prefix if the other side is /dev/null.
func same(name, header string) bool {
	return name == header || len(name) == len(header)+2 && strings.HasSuffix(name, "/"+header)
}

// extendedHeader parses the lines of git about a file before its names.
func (r *reader) extendedHeader(f *File, old, renamed *string) error {
	for ; r.more(); r.at++ {
		line := strings.TrimSuffix(r.line(), "\r")
		word, rest := "", ""
		for _, known := range []string{
			"old mode ", "new mode ", "deleted file mode ", "new file mode ", "copy from ", "copy to ",
			"rename from ", "rename to ", "similarity index ", "dissimilarity index ", "index ",
		} {
			if after, ok := strings.CutPrefix(line, known); ok {
				word, rest = known, after
			}
		}
		var err error
		switch word {
		case "":
			if isBinary(line) {
				return r.wrong("expected text; use copy_file or move_file for a binary file")
			}
			return nil
		case "index ": // the mode of a file that keeps it, after the hashes
			if _, mode, ok := strings.Cut(rest, " "); ok {
				_, err = r.mode(mode)
			}
		case "old mode ":
			_, err = r.mode(rest)
		case "new mode ":
			f.Mode, err = r.mode(rest)
		case "new file mode ":
			f.Operation = Create
			f.Mode, err = r.mode(rest)
		case "deleted file mode ":
			f.Operation = Delete
			_, err = r.mode(rest)
		case "copy from ", "copy to ":
			return r.wrong("a copy, which a patch cannot make; use copy_file, or a diff without copies (no -C)")
		case "rename from ":
			*old, err = r.unquoted(rest)
		case "rename to ":
			f.Operation = Rename
			*renamed, err = r.unquoted(rest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mode parses the mode of a file as git writes it.
func (r *reader) mode(octal string) (fs.FileMode, error) {
	const regular, kinds = 0o100000, 0o170000
	n, err := strconv.ParseUint(strings.TrimSpace(octal), 8, 32)
	switch {
	case err != nil:
		return 0, r.wrong("expected a mode such as 100644")
	case n&kinds != regular:
		return 0, r.wrong("expected the mode of a file, 100644 or 100755; links and submodules cannot be patched")
	case n&0o111 != 0:
		return 0o755, nil
	default:
		return 0o644, nil
	}
}

// names parses the two lines with the old and the new name of a file; "" is /dev/null.
func (r *reader) names() (old, renamed string, err error) {
	if old, err = r.name("--- "); err != nil {
		return "", "", err
	}
	r.at++
	if renamed, err = r.name("+++ "); err != nil {
		return "", "", err
	}
	r.at++
	old, renamed = withoutPrefixes(old, renamed)
	return old, renamed, nil
}

// name parses the name in the current line; "" is /dev/null.
func (r *reader) name(before string) (string, error) {
	text := strings.TrimSuffix(strings.TrimPrefix(r.line(), before), "\r")
	if !strings.HasPrefix(text, `"`) {
		text, _, _ = strings.Cut(text, "\t") // a time follows, or nothing after a name with spaces
	}
	text, err := r.unquoted(text)
	if err != nil {
		return "", err
	}
	switch text = strings.TrimRight(text, " "); text {
	case "/dev/null":
		return "", nil
	case "":
		return "", r.wrong("expected the name of a file")
	}
	return text, nil
}

// unquoted returns a name that may be quoted as in C.
func (r *reader) unquoted(text string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		return text, nil
	}
	name, rest, ok := unquote(text)
	if !ok || strings.TrimSpace(rest) != "" && !strings.HasPrefix(rest, "\t") {
		return "", r.wrong("which is not quoted as in C")
	}
	return name, nil
}

// unquote parses the C string at the beginning of text. Its octal escapes are bytes,
// which need not be UTF-8 one by one.
func unquote(text string) (name, rest string, ok bool) {
	var b strings.Builder
	for at := 1; at < len(text); at++ {
		switch c := text[at]; c {
		case '"':
			return b.String(), text[at+1:], true
		case '\\':
			at++
			if at == len(text) {
				return "", "", false
			}
			if i := strings.IndexByte(`abtnvfr"\`, text[at]); i >= 0 {
				b.WriteByte("\a\b\t\n\v\f\r\"\\"[i])
				continue
			}
			if at+3 > len(text) {
				return "", "", false
			}
			n, err := strconv.ParseUint(text[at:at+3], 8, 8)
			if err != nil {
				return "", "", false
			}
			b.WriteByte(byte(n))
			at += 2
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// headerNames returns the names after "diff --git". They are clear only if they are equal
// except for their prefixes, or quoted.
func headerNames(text string) (old, renamed string) {
	text = strings.TrimSuffix(text, "\r")
	if strings.HasPrefix(text, `"`) {
		first, rest, ok := unquote(text)
		second := strings.TrimPrefix(rest, " ")
		if strings.HasPrefix(second, `"`) {
			var more string
			if second, more, ok = unquote(second); more != "" {
				ok = false
			}
		}
		if !ok {
			return "", ""
		}
		old, renamed = withoutPrefixes(first, second)
	} else if middle := len(text) / 2; len(text)%2 == 1 && text[middle] == ' ' {
		old, renamed = withoutPrefixes(text[:middle], text[middle+1:])
	}
	if old != renamed {
		return "", ""
	}
	return old, renamed
}

// withoutPrefixes removes the prefixes of git, such as a/ and b/. A diff without prefixes
// has the same name twice.
func withoutPrefixes(old, renamed string) (string, string) {
	prefixed := func(name string) bool {
		return len(name) > 2 && name[1] == '/' && strings.IndexByte("abciow", name[0]) >= 0
	}
	switch {
	case old == "" && strings.HasPrefix(renamed, "b/"), renamed == "" && strings.HasPrefix(old, "a/"):
		return old[min(2, len(old)):], renamed[min(2, len(renamed)):]
	case prefixed(old) && prefixed(renamed) && old[0] != renamed[0]:
		return old[2:], renamed[2:]
	}
	return old, renamed
}
