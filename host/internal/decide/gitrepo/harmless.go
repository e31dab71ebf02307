package gitrepo

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/gitenv"
)

// harmless reports whether a setting is known to have git start no program and read no
// further configuration, whatever its value, or if the environment overrides it.
func (s setting) harmless() bool {
	if s.subsection == "" && gitenv.Overrides(s.key()) {
		return true
	}
	listed := func(names string) bool { return slices.Contains(strings.Fields(names), s.name) }
	switch s.section {
	case "user", "author", "committer", "color", "column", "advice", "index", "feature", "i18n", "fsck", "init", "rerere", "grep", "blame",
		"checkout", "commitgraph", "transfer", "fetch", "push", "pull", "versionsort", "log", "format", "notes", "showbranch", "stash", "status",
		"http", "safe", "lfs", "gui", "gitflow", "apply", "am":
		return true
	case "core":
		return s.subsection == "" && listed(coreSettings)
	case "remote":
		return listed("url pushurl fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall followremotehead gh-resolved")
	case "branch":
		return listed("remote merge rebase pushremote description autosetupmerge autosetuprebase sort vscode-merge-base github-pr-owner-number")
	case "submodule": // git is asked about where there are some
		return listed("url active branch")
	case "extensions":
		return listed("worktreeconfig refstorage relativeworktrees preciousobjects noop")
	case "diff":
		if s.subsection != "" {
			return listed("xfuncname funcname binary wordregex algorithm")
		}
		return listed(`renames algorithm mnemonicprefix noprefix context interhunkcontext colormoved colormovedws indentheuristic renamelimit
			statgraphwidth statnamewidth suppressblankempty wordregex relative dirstat autorefreshindex wserrorhighlight tool guitool`)
	case "merge":
		return s.subsection == "" && listed("conflictstyle ff log renames renamelimit stat autostash verbosity directoryrenames tool guitool renormalize")
	case "rebase":
		return listed("autosquash autostash stat updaterefs missingcommitscheck forkpoint")
	case "commit":
		return listed("template status verbose cleanup")
	case "tag":
		return listed("sort")
	case "gc":
		return listed("auto autopacklimit autodetach pruneexpire reflogexpire reflogexpireunreachable worktreepruneexpire packrefs logexpiry aggressivedepth aggressivewindow bigpackthreshold cruftpacks writecommitgraph")
	case "pack":
		return listed("window depth compression threads windowmemory packsizelimit usebitmaps writebitmaps usesparse indexversion deltacachesize deltacachelimit")
	case "maintenance":
		return s.subsection != "" || listed("auto strategy autodetach")
	case "protocol":
		return s.subsection == "" && listed("version")
	case "pager":
		return slices.Contains([]string{"true", "false"}, s.value)
	}
	return false
}

// coreSettings are those of core that start nothing. Files of attributes name drivers,
// which are settings of their own.
const coreSettings = `repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf safecrlf eol quotepath
	abbrev compression loosecompression bigfilethreshold checkstat trustctime untrackedcache preloadindex splitindex sparsecheckout
	sparsecheckoutcone fscache longpaths hidedotfiles protecthfs protectntfs commentchar whitespace excludesfile attributesfile
	sharedrepository commitgraph multipackindex notesref warnambiguousrefs deltabasecachelimit packedgitlimit packedgitwindowsize`
