package command

import "strings"

// git takes the next word for the value of a long option only of some, which differ
// from version to version: here of none. It also takes the beginning of a name for the
// name, so that what is not its own option may be another one's.
const gitCommon = `stat stat= shortstat numstat dirstat summary name-only name-status patch no-patch raw minimal patience histogram diff-algorithm=
	word-diff word-diff= color color= no-color color-words find-renames find-renames= find-copies find-copies= no-renames
	ignore-space-change ignore-all-space ignore-blank-lines ignore-space-at-eol unified= inter-hunk-context= function-context
	full-index abbrev abbrev= binary cached staged merge-base exit-code quiet check no-ext-diff no-textconv no-prefix relative relative= text
	diff-filter= ignore-submodules ignore-submodules= compact-summary pickaxe-all pickaxe-regex`

const gitLog = gitCommon + ` oneline pretty pretty= format= graph decorate decorate= no-decorate all branches branches= tags tags= remotes
	remotes= max-count= skip= since= after= until= before= author= committer= grep= all-match invert-grep regexp-ignore-case extended-regexp
	fixed-strings perl-regexp merges no-merges first-parent reverse follow date= relative-date abbrev-commit no-abbrev-commit topo-order
	date-order author-date-order no-show-signature left-right cherry-pick cherry-mark cherry no-walk reflog walk-reflogs
	simplify-by-decoration full-history dense sparse ancestry-path source use-mailmap no-notes`

// gits are git's commands that look.
//
//nolint:gochecknoglobals // a table
var gits = map[string]program{
	"status": {options: options{flags: "sbvz", optional: "u", attached: true, long: `short branch show-stash porcelain porcelain= long verbose untracked-files
		untracked-files= ignore-submodules ignore-submodules= ignored ignored= ahead-behind no-ahead-behind renames no-renames find-renames find-renames= column no-column`}, operands: paths},
	"diff":      {options: options{flags: "pusRwbDazW", values: "SG", optional: "MCBU", attached: true, long: gitCommon}, operands: paths},
	"log":       {options: options{flags: "pusRwbDazWgiEFPc", values: "SGnL", optional: "MCBU", attached: true, long: gitLog, numbers: true}, operands: paths},
	"show":      {options: options{flags: "pusRwbDazWc", values: "SG", optional: "MCBU", attached: true, long: gitLog}, operands: paths},
	"blame":     {options: options{flags: "bcefklnstw", values: "L", optional: "MC", attached: true, long: "porcelain line-porcelain show-name show-number show-email date= abbrev abbrev="}, operands: paths},
	"rev-parse": {options: options{flags: "q", attached: true, long: "verify quiet short short= abbrev-ref show-toplevel show-prefix show-cdup is-inside-work-tree is-bare-repository git-dir absolute-git-dir symbolic symbolic-full-name"}, operands: paths},
	"ls-files":  {options: options{flags: "cdomiskutvz", long: "cached deleted others modified ignored stage unmerged killed exclude-standard error-unmatch full-name eol"}, operands: paths},
	"shortlog":  {options: options{flags: "nsec", attached: true, long: "numbered summary email all no-merges since= until="}, operands: paths},
	"describe":  {options: options{attached: true, long: "all tags contains abbrev abbrev= exact-match always long first-parent dirty"}, operands: paths},
	"grep": {options: options{flags: "EFGPivwcLlonhHIaqrzpW", values: "emABC", attached: true, numbers: true, long: `extended-regexp fixed-strings
		basic-regexp perl-regexp ignore-case invert-match word-regexp count color color= files-with-matches files-without-match name-only
		only-matching quiet line-number column null after-context= before-context= context= text recursive cached full-name heading break`}, operands: patternPaths},
}

// gitMedium are those that change what can be brought back.
//
//nolint:gochecknoglobals // a table
var gitMedium = set("add commit checkout switch restore merge rebase cherry-pick revert stash branch tag fetch pull mv rm init reset worktree remote notes apply am")

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

// goBuild leaves out what writes or executes elsewhere, and what fetches.
const goBuild = `a n v x race msan asan trimpath tags= p= buildvcs buildvcs= cover covermode= coverpkg= json`

// gos are go's commands that build and test what lies in the workspace.
//
//nolint:gochecknoglobals // a table
var gos = map[string]program{
	"build": {options: options{single: true, long: goBuild}, operands: paths},
	"vet":   {options: options{single: true, long: goBuild + " c="}, operands: paths},
	"test": {options: options{single: true, long: goBuild + ` bench= benchmem benchtime= blockprofilerate= count= cpu= failfast fullpath fuzzminimizetime=
		list= parallel= run= short shuffle= skip= timeout= vet=`}, operands: paths},
	"list":    {options: options{single: true, long: goBuild + " f= e deps test find compiled export"}, operands: paths},
	"doc":     {options: options{single: true, long: "all c cmd short src u"}, operands: paths},
	"version": {options: options{single: true, long: "m v"}, operands: paths},
}

//nolint:gochecknoglobals // a table
var goMedium = set("mod fmt clean work fix help env")

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
