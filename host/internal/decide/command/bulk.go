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
		grep := programs["grep"]
		a := grep.split(args)
		if a.unknown != "" {
			return "the option " + a.unknown + " may make " + s.Name + " search all files below a directory"
		}
		if a.has("r", "R", "recursive", "dereference-recursive") {
			if s.Name == "grep" {
				s.Search = grepSearch(&a)
			}
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
		if slices.ContainsFunc(args, copiesAll) {
			return s.Name + " copies whole directories"
		}
	case "diff":
		diff := programs["diff"]
		a := diff.split(args)
		s.Search = diffSearch(&a)
		if s.Search != nil || a.unknown != "" || a.has("r", "recursive", "N", "new-file") {
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

// copiesAll reports whether a word may make cp or scp copy directories. Their options are not
// listed: long ones may be abbreviated, and any letter may be an option.
func copiesAll(w word) bool {
	if name, long := strings.CutPrefix(w.text, "--"); long {
		return name != "" && (strings.HasPrefix("recursive", name) || strings.HasPrefix("archive", name))
	}
	return strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "rRa")
}

// ripgrep returns why rg reads files that it would otherwise leave out; "" if it does not. It adds
// the globs that select files to the mentions.
func (r *reader) ripgrep(s *Segment, args []word) string {
	rg := programs["rg"]
	a := rg.split(args)
	globs := slices.DeleteFunc(a.valuesOf("g", "glob", "iglob"), func(glob string) bool { return glob == "" || glob[0] == '!' })
	for _, glob := range globs { // they also select hidden and ignored files
		r.mention(glob, true)
	}
	switch {
	case a.unknown != "":
		return "the option " + a.unknown + " may make rg search hidden, ignored or linked files"
	case a.has("files", "type-list"):
		return "" // it prints names
	case a.has("u", "unrestricted", ".", "hidden", "L", "follow", "no-ignore", "no-ignore-vcs"):
		return "rg searches hidden, ignored or linked files"
	case len(globs) == 0:
		return ""
	}
	s.Search = globSearch(&a, globs)
	return "rg searches all files that match " + globs[0]
}

// patches reports whether a git command with these words after its name prints patches, or tells
// whether they contain a text.
func patches(name string, words []word) bool {
	p := gits[name]
	if name == "reflog" || name == "whatchanged" {
		p = gits["log"]
	}
	a := p.split(words)
	asked := a.unknown != "" || a.hasIn(gitPatch)
	switch name {
	case "diff":
		return asked || !a.hasIn(gitSummary)
	case "show":
		names := known(a.operands)
		file := slices.ContainsFunc(names, isBlob) && !slices.ContainsFunc(names, isCommit)
		return asked || slices.ContainsFunc(names, mayBeBlob) || !file && !a.hasIn(gitSummary)
	case "log", "reflog", "whatchanged":
		return asked
	case "status":
		return a.unknown != "" || a.has("v", "verbose")
	case "commit": // its options are not listed; git takes the beginning of a long one's name
		return slices.ContainsFunc(words, func(w word) bool {
			return !w.static || strings.HasPrefix(w.text, "--v") || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "v")
		})
	}
	return gitPatches[name]
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
