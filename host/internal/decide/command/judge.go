package command

import (
	"strings"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// operands is what a program takes its operands for.
type operands int

const (
	nothing      operands = iota
	anything              // words that it prints or compares
	paths                 // files and directories that it reads
	patternPaths          // a pattern, then files
	filterPaths           // a filter of jq, then files
)

// program is a program with known harmless uses.
type program struct {
	options

	operands operands
	// most bounds the operands; 0 means no bound.
	most int
	// check replaces the check of operands.
	check func(r *reader, s *Segment, words []word)
}

// judge finds the risk of a command.
func (r *reader) judge(s *Segment, words []word) {
	program, ok := programs[s.Name]
	if !ok {
		r.unknown(s, words)
		return
	}
	s.Known = true
	if program.check != nil {
		program.check(r, s, words[1:])
		return
	}
	r.uses(s, program, words[1:])
}

// covers reports whether a program that takes no operands has only known options.
func (p *program) covers(words []word) bool {
	a := p.split(words)
	return a.unknown == "" && len(a.operands) == 0
}

// maxBuildWords is the largest number of words in the set builds.
const maxBuildWords = 3

// buildsWorkspace reports whether a command builds or tests what is in the workspace: its first
// words are in the set builds, and nothing else speaks against it.
func buildsWorkspace(s *Segment) bool {
	if !s.Clean || !s.Literal || s.Maybe || s.altered || s.fed {
		return false
	}
	return startsBuild(s.Argv)
}

// startsBuild reports whether the first words of a command are in the set builds.
func startsBuild(argv []string) bool {
	for n := range min(len(argv), maxBuildWords) {
		if builds[strings.Join(argv[:n+1], ":")] {
			return true
		}
	}
	return false
}

// uses checks the options and operands of a known program.
func (r *reader) uses(s *Segment, p program, words []word) {
	a := p.split(words)
	if a.unknown != "" {
		s.blame(High, "the option %s of %s is not known to be harmless", a.unknown, s.Name)
		return
	}
	rest := a.operands
	if p.operands == patternPaths && len(rest) > 0 && !a.has("e", "regexp", "files") {
		r.literal(s, rest[0])
		rest = rest[1:]
	}
	if p.operands == filterPaths && len(rest) > 0 {
		r.literal(s, rest[0])
		if filterReads().MatchString(rest[0].text) {
			s.blame(High, "the filter %s may read other files", rest[0].text)
		}
		rest = rest[1:]
	}
	if p.operands == nothing && len(rest) > 0 || p.most > 0 && len(rest) > p.most {
		s.blame(High, "%s is more than %s is known to take harmlessly", rest[len(rest)-1].text, s.Name)
	}
	for _, w := range rest {
		if p.operands == anything {
			r.literal(s, w)
		} else {
			r.path(s, w)
		}
	}
}

// filterReads matches what a filter of jq reads files with.
var filterReads = lazyregexp.New(`\b(?:import|include|modulemeta)\b`)

// literal blames a segment for a word that may be several words or an option.
func (r *reader) literal(s *Segment, w word) {
	if !w.static && !w.pipe {
		s.blame(High, "%s is known only when it runs", w.text)
	}
}

// unknown finds the risk of a program with unknown uses.
func (r *reader) unknown(s *Segment, words []word) {
	switch {
	case runners[s.Name], shells[s.Name]:
		s.fear(High, "%s runs other commands", s.Name)
	case strings.HasPrefix(s.Name, "python") && startsBuild(s.Argv):
		// "python3 -m pytest" executes what "pytest" does.
	case highRisk[s.Name], strings.HasPrefix(s.Name, "python"), strings.HasPrefix(s.Name, "mkfs."):
		s.fear(High, "%s may remove, execute or send away anything", s.Name)
	}
	if wrapper, ok := wrappers[s.Name]; ok && !wrapper.plain {
		s.fear(High, "%s runs another command", s.Name)
	}
	for _, w := range words[1:] {
		if !w.static && !w.pipe {
			s.fear(High, "%s is known only when it runs", w.text)
		}
		if !w.static || strings.HasPrefix(w.text, "-") || strings.Contains(w.text, "://") {
			continue
		}
		if risk, why := r.outside(w.text); risk == High {
			s.fear(risk, "%s", why)
		}
	}
	s.fear(Medium, "it is not known what %s does", s.Name)
}

// highRisk are programs that remove, execute, send or change things that cannot be restored, or
// that escape from the program that runs them.
//
//nolint:gochecknoglobals // a table
var highRisk = set(`rm rmdir shred unlink truncate chmod chown chgrp chattr setfacl setcap ln kill killall pkill
	eval source . exec trap alias unalias bind enable hash shopt history fc complete compgen mapfile readarray declare typeset local export readonly
	perl ruby node nodejs deno bun php lua tclsh awk gawk mawk nawk sed ed ex vi vim nvim nano emacs less more most man info pager
	gdb lldb strace ltrace
	curl wget nc ncat netcat socat telnet ftp sftp scp rsync ssh ssh-keygen openssl gpg
	npx pnpx bunx uvx pipx pip pip3 gem cargo terraform tofu ansible ansible-playbook pulumi helm kubectl docker podman aws gcloud az gh glab
	psql mysql mariadb sqlite3 redis-cli mongo mongosh
	systemctl service crontab at batch mount umount swapon swapoff insmod modprobe sysctl iptables nft ip passwd useradd usermod visudo
	dd mkfs fdisk parted wipefs mkswap sudo su doas shutdown reboot halt poweroff init telinit tar zip unzip cpio
	go git find rg sort xargs`)
