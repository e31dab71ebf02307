package command

import (
	"slices"
	"strings"
)

// patches reports whether a command of git, with its words, prints patches.
func patches(words []string) bool {
	options := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool { return w != "" && !strings.HasPrefix(w, "-") })
	if i := slices.Index(options, "--"); i >= 0 {
		options = options[:i]
	}
	asked := slices.ContainsFunc(options, makesPatch)
	switch words[0] {
	case "diff", "show":
		named := words[0] == "show" && slices.ContainsFunc(words[1:], isBlob) && !slices.ContainsFunc(words[1:], isCommit)
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

// makesPatch reports whether an option may have git print patches; "" is one that is not
// known.
func makesPatch(w string) bool {
	name, _, _ := strings.Cut(w, "=")
	return w == "" || gitPatch[name] || !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "pucUWL")
}

// isBlob reports whether a word names a file of a commit, as in HEAD:a.
func isBlob(w string) bool { return strings.Index(w, ":") > 0 && !strings.Contains(w, "{") }

// isCommit reports whether a word may name a commit.
func isCommit(w string) bool { return !strings.HasPrefix(w, "-") && !isBlob(w) }
