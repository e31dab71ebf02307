package gitrepo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/gitenv"
)

// setting is one setting of a configuration. Section and name are in lower case.
type setting struct {
	section, subsection, name, value string
}

// key is the setting's name as git prints it.
func (s setting) key() string {
	if s.subsection == "" {
		return s.section + "." + s.name
	}
	return s.section + "." + s.subsection + "." + s.name
}

// errSyntax reports text that this package does not read; git may.
var errSyntax = errors.New("it is not understood")

// parser reads a configuration as git does.
type parser struct {
	text string // the rest
	line int
}

// parse reads a configuration.
func parse(text []byte) ([]setting, error) {
	if strings.ContainsRune(string(text), 0) {
		return nil, errSyntax
	}
	p := &parser{text: strings.ReplaceAll(string(text), "\r\n", "\n"), line: 1}
	var all []setting
	var in setting
	for {
		p.skip(" \t\n\r\v\f")
		var err error
		switch {
		case p.text == "":
			return all, nil
		case p.text[0] == '#' || p.text[0] == ';':
			p.toLineEnd()
		case p.text[0] == '[':
			in, err = p.header()
		default:
			if in.section == "" {
				err = errSyntax
				break
			}
			s := in
			if s.name, s.value, err = p.entry(); err == nil {
				all = append(all, s)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
}

func (p *parser) next() byte {
	c := p.text[0]
	if c == '\n' {
		p.line++
	}
	p.text = p.text[1:]
	return c
}

func (p *parser) skip(set string) {
	for p.text != "" && strings.IndexByte(set, p.text[0]) >= 0 {
		p.next()
	}
}

func (p *parser) toLineEnd() {
	for p.text != "" && p.text[0] != '\n' {
		p.next()
	}
}

// word takes letters, digits and the given further characters, in lower case.
func (p *parser) word(further string) string {
	n := 0
	for n < len(p.text) && (letter(p.text[n]) || p.text[n] >= '0' && p.text[n] <= '9' || strings.IndexByte(further, p.text[n]) >= 0) {
		n++
	}
	word := strings.ToLower(p.text[:n])
	p.text = p.text[n:]
	return word
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// header reads [section], [section "subsection"] or [section.subsection].
func (p *parser) header() (setting, error) {
	p.next()
	var s setting
	s.section = p.word("-.")
	section, subsection, dotted := strings.Cut(s.section, ".")
	if dotted {
		s.section, s.subsection = section, subsection
	}
	p.skip(" \t")
	if p.text != "" && p.text[0] == '"' && !dotted {
		p.next()
		var name strings.Builder
		for {
			if p.text == "" || p.text[0] == '\n' {
				return s, errSyntax
			}
			c := p.next()
			if c == '"' {
				break
			}
			if c == '\\' {
				if p.text == "" || p.text[0] == '\n' {
					return s, errSyntax
				}
				c = p.next()
			}
			name.WriteByte(c)
		}
		s.subsection = name.String()
	}
	if s.section == "" || p.text == "" || p.next() != ']' {
		return s, errSyntax
	}
	return s, nil
}

// escapes are the characters that may follow a backslash in a value.
const escapes = `ntb\"`

// entry reads a name with its value, "true" if it has none.
func (p *parser) entry() (name, value string, err error) {
	if !letter(p.text[0]) {
		return "", "", errSyntax
	}
	name = p.word("-")
	p.skip(" \t")
	if p.text == "" || p.text[0] == '\n' {
		return name, "true", nil
	}
	if p.next() != '=' {
		return "", "", errSyntax
	}
	p.skip(" \t")
	var b strings.Builder
	quoted := false
	for p.text != "" {
		c := p.text[0]
		if c == '\n' {
			if quoted {
				return "", "", errSyntax
			}
			break
		}
		switch p.next(); {
		case !quoted && (c == '#' || c == ';'):
			p.toLineEnd()
			continue
		case c == '"':
			quoted = !quoted
		case c == '\\':
			if p.text == "" {
				return "", "", errSyntax
			}
			e := p.next()
			if e == '\n' {
				continue
			}
			i := strings.IndexByte(escapes, e)
			if i < 0 {
				return "", "", errSyntax
			}
			b.WriteByte("\n\t\b\\\""[i])
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", "", errSyntax
	}
	return name, strings.TrimRight(b.String(), " \t"), nil
}

// harmless reports whether a setting, with any value, is known to make git start no
// program and read no further configuration, or is overridden by the environment.
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

// coreSettings are the settings of core that start nothing. Attributes files name
// drivers, which are separate settings.
const coreSettings = `repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf safecrlf eol quotepath
	abbrev compression loosecompression bigfilethreshold checkstat trustctime untrackedcache preloadindex splitindex sparsecheckout
	sparsecheckoutcone fscache longpaths hidedotfiles protecthfs protectntfs commentchar whitespace excludesfile attributesfile
	sharedrepository commitgraph multipackindex notesref warnambiguousrefs deltabasecachelimit packedgitlimit packedgitwindowsize`
