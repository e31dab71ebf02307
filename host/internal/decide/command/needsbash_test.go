package command_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// What the interpreter does otherwise than bash, or lacks, is executed by bash alone.
func TestNeedsBash(t *testing.T) {
	for _, text := range []string{
		`for f in *.go; do wc -l "$f"; done`,
		`x=a.b; echo ${x%.*} ${x##*.} ${x/a/z} ${x^^} ${x:2:1} ${#x} ${none:-d} $? $# $PWD`,
		`n=1; while [ $n -lt 4 ]; do n=$((n+1)); done`,
		`echo {a,b}c {1..3} {a..c} x{1,22}y {} a{b`,
		`a=(x y); echo "${a[@]}" ${a[1]} ${#a[@]}`,
		`printf '%s-%d\n' a 1; printf "%-10s|\n" b; printf '100%%\n'`,
		`while IFS= read -r line; do echo "$line"; done <f`,
		`git ls-files | while read f; do wc -l "$f"; done`,
		`[[ $x == a* && -f $y ]] || echo no`,
		`diff <(sort a) <(sort b)`,
		`ls [a-c]* 2>/dev/null | head -n 3`,
	} {
		if !command.Parse(text, command.Options{}).HasTree() {
			t.Errorf("%q has no tree", text)
		}
	}
	for _, text := range []string{
		`echo [!a]*`, `echo [^a]*`, `echo @(a|b)`,
		`echo {1..20000}`, `echo {1..999}{1..999}`, `echo {a,}`, `echo {A..c}`, `echo {1..9..2}`,
		`echo $((1/0))`, `echo $((08))`, `echo $((2**3))`, `echo $((1<<2))`, `((x++))`, `let x=1`, `for ((i=0;i<3;i++)); do echo $i; done`,
		`echo "${x/#h/H}"`, `echo "${x/%z/Z}"`, `echo "${x/$y/z}"`, `echo ${x/}`, `echo "${x//}"`, `echo ${x//""/a}`, `echo ${x@Q}`, `echo ${!x}`, `echo ${!x*}`, `echo "${@:-none}"`, `echo ${x:?no}`,
		`echo "${PIPESTATUS[@]}"`, `echo $RANDOM`, `echo $BASH_VERSION`, `echo $-`, `echo $!`, `echo $0`, `echo $_`, `BASH_ENV=x; ls`, `PWD=x; pwd`,
		`IFS=:; echo $x`, `IFS=, read -r a b`,
		`printf '%05.2f' 1`, `printf '%(%F)T'`, `printf '%*d' 1 2`, `printf "$x"`, `printf -v x a`, `printf '%e' 1`,
		`read -ra a`, `read -d '' x`, `read -n 1 x`, `mapfile -t a`, `declare -A m`, `set -u`, `shopt -s nullglob`, `exec 3<f`,
		`time ls`, `coproc ls`, `select x in a; do echo; done`, `tee >(cat)`, `ls 3>&1`, `[[ -v x ]]`, `[[ a -nt b ]]`,
	} {
		if command.Parse(text, command.Options{}).HasTree() {
			t.Errorf("%q has a tree", text)
		}
	}
}
