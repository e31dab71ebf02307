package command_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// What is known only when it runs is no reason to ask before, if all else only reads.
func TestParseDeferred(t *testing.T) {
	opts := command.Options{Workspace: "/ws", WriteRedirects: []string{"/dev/null", "out"}}
	for _, tt := range []struct {
		line string
		want string // of the reason for a risk; "" if there is none
	}{
		{line: `ls *.go`},
		{line: `for f in *.go; do wc -l "$f"; done`},
		{line: `wc -l $(git ls-files)`},
		{line: `x=$(git rev-parse HEAD); echo "$x"`},
		{line: `FILES=(a b); cat "${FILES[@]}" | sort`},
		{line: `n=1; while [ $n -lt 3 ]; do echo $n; n=$((n+1)); done`},
		{line: `cat /ws/*.go 2>/dev/null`},
		{line: `f=a; cat <"$f"`},
		{line: `f=a; timeout 5 grep -n foo $f`},
		{line: `n=3; head -n $n a`},
		{line: `dir=src; find $dir -name '*.go'`},
		{line: `find . -name '*.go' | xargs grep -n foo`},
		{line: `git ls-files -z | xargs -0 -n 5 wc -l`},
		{line: `find . -name '*.go' -exec grep -l foo {} +`},
		{line: `find . -name '*.go' -exec grep -q foo {} \; -print`},

		{line: `git ls-files | while read f; do wc -l "$f"; done`},
		{line: `while IFS= read -r l; do echo "$l"; done < a.txt`},
		{line: `while read -r name_1 _; do echo "$name_1"; done <a`},
		{line: `ls | (read a; cat "$a")`},

		{`read PATH; ls`, "it sets PATH"},
		{`while read -r IFS; do ls; done`, "it sets IFS"},
		{`read x LD_PRELOAD <a; ls`, "it sets LD_PRELOAD"},
		{`read GIT_DIR <a; git status`, "it sets GIT_DIR"},
		{`read BASH_ENV <a; ls`, "it sets BASH_ENV"},
		{`read PWD <a; pwd`, "it sets PWD"},
		{`read HOME <a; cd`, "it sets HOME"},
		{`read https_proxy <a; ls`, "it sets https_proxy"},
		{`read <a; ls`, "it sets REPLY"},
		{`read -a x <a; ls`, "the option -a of read"},
		{`read -u 3 x; ls`, "the option -u of read"},
		{`read -- -x <a`, "it sets -x"},
		{`read $x <a`, "evaluates its words"},
		{`read 'x[$(touch f)]' <a`, "evaluates its words"},
		{`IFS=: read -r x <a; ls`, "it sets IFS"},
		{`IFS=$x read -r x <a; ls`, "it sets IFS"},
		{`IFS+= read -r x <a; ls`, "it sets IFS"},
		{`PATH= read -r x <a; ls`, "it sets PATH"},
		{`IFS= cat a *`, "it sets IFS"},
		{`IFS= 'read' x; ls`, "is quoted"},
		{`env IFS= read x; ls`, "it sets IFS"},
		{`while read f; do rm "$f"; done`, "rm may remove"},
		{`while read f; do $f; done`, "which program it runs"},
		{`while read f; do echo a >"$f"; done`, "it writes a file"},
		{`cat ${x}`, "$x is not set in the line"},
		{`$x f`, "which program it runs"},
		{`touch $x`, "it is not known what touch does"},
		{`x=1; touch a`, "it is not known what touch does"},
		{`ls *; touch a`, "it is not known what touch does"},
		{`ls * >out`, "it writes the file out"},
		{`cat $x >f`, "it writes the file f"},
		{`find $dir -delete`, "-delete of find"},
		{`grep -r key $dir -f x`, "-f of grep"},
		{`cat ~/*`, "~/* is known only"},
		{`cat /etc/*`, "/etc/* is known only"},
		{`cat ../*`, "../* is known only"},
		{`cat "$x/../y"`, "is known only"},
		{`ls *.go | xargs touch`, "it is not known what touch does"},
		{`ls *.go | xargs -a f cat`, "the option -a of xargs is not known"},
		{`find . -name '*.go' -exec rm {} +`, "rm may remove"},
		{`find . -delete -exec cat {} +`, "-delete of find"},
		{`find . -execdir cat {} +`, "-execdir of find"},
		{`find . -exec cat {} \; -print -delete`, "-exec of find"},
		{`find . -exec cat {} \; -delete -print`, "-exec of find"},
		{`find . -exec cat {} \; -exec rm {} \; -print`, "rm may remove"},
		{`find . -exec cat {} \; -fprint f`, "-exec of find"},
		{`find . -exec cat {} + -print`, "-exec of find"},
		{`find . -exec rm {} \; -print`, "rm may remove"},
		{`[[ -f $x ]]`, "$x is known only"},
		{`export X=$y; ls`, "it sets variables"},
		{`f() { ls; }; f`, "it defines a function"},
		{`eval $x`, "runs text that is known only when it runs"},
		{`read "$x"`, "evaluates its words"},
		{`echo "${x:-'$(ls)'}"`, "an expansion ${...} that holds more"},
	} {
		line := command.ParseDeferred(tt.line, opts)
		var why []string
		for _, p := range line.Problems {
			why = append(why, p.Why)
		}
		for _, s := range line.Segments {
			if !s.Maybe && s.Risk > command.Low {
				why = append(why, s.Why)
			}
		}
		if got := strings.Join(why, "; "); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("ParseDeferred(%q): %q, want %q", tt.line, got, tt.want)
		}
	}
}

// A program that a list denies is found in a deferred line as well.
func TestDeferredNames(t *testing.T) {
	for _, text := range []string{`ls *; sudo $x`, `env sudo $x`, `echo $(sudo $x)`} {
		found := false
		for _, s := range command.ParseDeferred(text, command.Options{}).Segments {
			found = found || s.Name == "sudo"
		}
		if !found {
			t.Errorf("sudo is not found in %q", text)
		}
	}
}
