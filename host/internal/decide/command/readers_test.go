package command_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// TestReaders checks programs that only read, and the uses of them that do more.
func TestReaders(t *testing.T) {
	for _, line := range []string{
		"cmp a b", "column -t -s , a", "comm -12 a b", "df -h .", "du -sh .", "du -d 1 -h", "file -b a", "fold -w 80 a", "id -u", "join -1 2 -2 1 a b",
		"jq . a.json", "jq -r '.a[] | select(.b == \"c\")' a.json", "jq -n 1", "md5sum a", "nl -ba a", "nproc", "od -c a", "paste -sd, a", "readlink -f a",
		"realpath a", "rev a", "seq 1 10", "seq -s , 3", "sha256sum a b", "stat -c %s a", "tac a", "tail -f a", "tail -F a", "uname -a", "which -a go",
		"whoami", "xxd a", "xxd -l 16 -c 8 a", "env",
		"git branch", "git branch -a", "git branch -vv", "git branch --show-current", "git tag", "git tag -l", "git remote -v", "git merge-base a b",
		"git ls-tree -r --name-only HEAD",
	} {
		if got := command.Parse(line, command.Options{Workspace: "/ws"}); got.Risk() != command.Low || !got.Segments[0].Known {
			t.Errorf("%s: %s", line, told(got))
		}
	}
	for _, line := range []string{
		"xxd a b", "xxd -r a", "xxd -rp a", "xxd -ar a", "xxd -bc a b", "xxd -pc a b", "xxd -al a b", "xxd -us a b", "xxd a -p", "xxd a --", "xxd -l 4 a -ps", "xxd -- a -p", "od -cw /etc/passwd", "od -c --width /etc/passwd", "jq -n 'modulemeta'", "file -C", "file -f names", "file -z a", "file -m magic a", "du --files0-from=a", "du -X a", "md5sum -c a",
		"sha256sum --check a", "jq -f a b", "jq -L a . b", "jq 'import \"a\" as $a; $a' b", "jq 'include \"a\"; b' c", "jq --rawfile a b . c", "jq --slurpfile a b . c",
		"od +16 /etc/passwd", "stat /etc/passwd", "tail --pid=1 -f a", "env a=1 ls", "env -S 'rm x'", "env -i rm x", "which -a $x", "column -c 80 a", "nproc --ignore=1",
		"git branch new", "git branch -D old", "git branch -m a b", "git branch --list x", "git branch --format=%(signature)", "git branch --sort=signature",
		"git branch --edit-description", "git branch -u a", "git tag v1", "git tag -d v1", "git tag -a", "git tag -l v1", "git remote add a b", "git remote update",
		"git remote show", "git remote -v update", "git merge-base --output=a", "git ls-tree --format=a HEAD",
	} {
		if got := command.Parse(line, command.Options{Workspace: "/ws"}); got.Risk() == command.Low && got.Segments[0].Known {
			t.Errorf("%s is low: %s", line, told(got))
		}
	}
}
