package command

import (
	"slices"
	"strings"
)

// bulk returns why a command reads files that it does not name, such as those below a directory or
// in a list from elsewhere; "" if it does not, as far as is known.
func (r *reader) bulk(s *Segment, words []word) string {
	args := words[1:]
	if r.line.Deferred && (s.Name == "xargs" || s.Name == "find") { // each command that they build is judged
		return ""
	}
	switch s.Name {
	case "grep", "egrep", "fgrep", "zgrep", "bzgrep", "xzgrep", "zstdgrep":
		if given(args, "r", "recursive") || given(args, "R", "dereference-recursive") || slices.ContainsFunc(args, recurses) {
			s.Search = searchOf(s.Name, args)
			return s.Name + " searches all files below a directory"
		}
	case "rgrep", "ag", "ack", "ugrep", "ug", "sift", "pt":
		return s.Name + " searches all files below a directory"
	case "rg":
		return r.ripgrep(s, args)
	case "find", "fd", "fdfind":
		if slices.ContainsFunc(args, func(w word) bool { return executes(w) || fdExecutes[w.text] }) {
			return s.Name + " runs a command with the files that it finds"
		}
	case "xargs", "parallel":
		if len(args) == 0 {
			return ""
		}
		return s.Name + " runs a command with the files that it is given"
	case "tar", "bsdtar", "zip", "7z", "7za", "cpio", "pax", "rsync":
		return s.Name + " takes whole directories"
	case "cp", "scp":
		if given(args, "r", "recursive") || given(args, "R", "archive") || given(args, "a", "archive") {
			return s.Name + " copies whole directories"
		}
	case "diff":
		s.Search = placesOf(args)
		if s.Search != nil || given(args, "r", "recursive") || given(args, "N", "new-file") {
			return "diff compares all files below directories"
		}
	case "git":
		switch {
		case len(s.Words) > 1 && gitBulk[s.Words[1]]:
			return "git " + s.Words[1] + " reads all files that git knows"
		case len(s.Words) > 1 && s.Words[1] == "diff" && slices.ContainsFunc(s.Words[2:], leadsOut):
			return "git diff may compare files outside of the repository"
		}
	}
	return ""
}

//nolint:gochecknoglobals // tables
var (
	fdExecutes = set("-x -X --exec --exec-batch")
	gitBulk    = set("grep archive bundle fast-export")
)

// recurses reports whether a word makes grep search directories. Long options may be abbreviated.
func recurses(w word) bool {
	name, value, valued := strings.Cut(w.text, "=")
	long := func(full string, least int) bool { return len(name) >= least && strings.HasPrefix(full, name) }
	return long("--recursive", 5) || long("--dereference-recursive", 5) ||
		long("--directories", 4) && (!valued || strings.HasPrefix("recurse", value)) || strings.HasPrefix(w.text, "-d")
}

// ripgrep returns why rg reads files that it would otherwise leave out; "" if it does not. It adds
// the globs that select files to the mentions.
func (r *reader) ripgrep(s *Segment, args []word) string {
	globs := globsOf(args)
	for _, glob := range globs {
		r.mention(glob, true)
	}
	if has(args, "--files") || has(args, "--type-list") {
		return "" // it prints names
	}
	for _, w := range args {
		if w.text == "--" {
			break
		}
		one := []word{w}
		if given(one, "u", "unrestricted") || given(one, ".", "hidden") || given(one, "L", "follow") || strings.HasPrefix(w.text, "--no-ignore") {
			return "rg searches hidden, ignored or linked files"
		}
	}
	if len(globs) == 0 {
		return ""
	}
	s.Search = globSearch(args, globs)
	return "rg searches all files that match " + globs[0]
}

// globsOf returns the globs that select files for rg. They also select hidden and ignored ones.
func globsOf(args []word) (globs []string) {
	for i, w := range args {
		name, value, valued := strings.Cut(w.text, "=")
		long := name == "--glob" || name == "--iglob"
		letters := !strings.HasPrefix(w.text, "--") && strings.HasPrefix(w.text, "-")
		switch at := strings.IndexByte(w.text, 'g'); {
		case w.text == "--":
			return globs
		case long && valued:
		case letters && at > 0 && at+1 < len(w.text):
			value = w.text[at+1:]
		case long || letters && at > 0:
			if value = ""; i+1 < len(args) {
				value = args[i+1].text
			}
		default:
			continue
		}
		if value != "" && !strings.HasPrefix(value, "!") {
			globs = append(globs, value)
		}
	}
	return globs
}

// patches reports whether a git command with these words prints patches.
func patches(words []string) bool {
	options := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool { return w != "" && !strings.HasPrefix(w, "-") })
	if i := slices.Index(options, "--"); i >= 0 {
		options = options[:i]
	}
	asked := slices.ContainsFunc(options, makesPatch)
	switch words[0] {
	case "diff", "show":
		named := words[0] == "show" && slices.ContainsFunc(words[1:], isBlob) && !slices.ContainsFunc(words[1:], isCommit)
		if words[0] == "show" && slices.ContainsFunc(words[1:], mayBeBlob) {
			return asked || !named
		}
		return asked || !named && !slices.ContainsFunc(options, func(w string) bool { name, _, _ := strings.Cut(w, "="); return gitSummary[name] })
	case "log", "reflog", "whatchanged":
		return asked
	case "status", "commit":
		return slices.ContainsFunc(options, func(w string) bool {
			return w == "" || w == "--verbose" || !strings.HasPrefix(w, "--") && strings.Contains(w, "v")
		})
	}
	return gitPatches[words[0]]
}

// makesPatch reports whether an option may make git print patches, or tell whether they contain a
// text; "" is an unknown option.
func makesPatch(w string) bool {
	name, _, _ := strings.Cut(w, "=")
	return w == "" || gitPatch[name] || !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "pucUWLSG")
}

// mayBeBlob reports whether a word of git show may name a file by its id, which git prints
// whatever the options say.
func mayBeBlob(w string) bool {
	return !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "HEAD") && !isBlob(w)
}

// leadsOut reports whether a path may lead out of the directory.
func leadsOut(w string) bool {
	return strings.HasPrefix(w, "/") || slices.Contains(strings.Split(w, "/"), "..")
}

// isBlob reports whether a word names a file of a commit, as in HEAD:a.
func isBlob(w string) bool {
	return strings.Index(w, ":") > 0 && !strings.HasPrefix(w, "-") && !strings.Contains(w, "{")
}

// isCommit reports whether a word may name a commit.
func isCommit(w string) bool { return !strings.HasPrefix(w, "-") && !isBlob(w) }
