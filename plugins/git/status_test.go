package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// families of repositories share their commits; each has so many variants of files and
// index. All together are compared with git.
const (
	families = 100
	variants = 5
)

// names of files, some of which need quotes nearly everywhere.
var names = []string{"a", "b.txt", "dir/c", "dir/deep/d", "with space", "ümlaut", "quo\"te", "tab\there", "line\nbreak", "-dash", "dir/-x", ":(top)magic", "star*", "back\\slash"}

// TestStatusAsGit compares the status of generated repositories with git's in another format.
func TestStatusAsGit(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{budget: tool.MiB})
	kinds := map[string]int{}
	var mu sync.Mutex
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for seed := range seeds {
				script := family(rand.New(rand.NewPCG(seed, 1)), seed)
				build := exec.Command("bash", "-c", script)
				build.Dir, build.Env = w.dir, append(environment(w.scratch), "GIT_LITERAL_PATHSPECS=1")
				if out, err := build.CombinedOutput(); err != nil {
					t.Errorf("seed %d: %v\n%s\n%s", seed, err, script, out)
					continue
				}
				for variant := range variants {
					repo := fmt.Sprintf("r%d.%d", seed, variant)
					want, err := w.tryGit(repo, "status", "--porcelain=v1", "-z", "--branch", "--untracked-files=all", "--find-renames", "--ignore-submodules=dirty")
					if err != nil {
						t.Error(err)
						continue
					}
					got := structured[Status](w, "git_status", args{"path": repo, "untracked": "all", "limit": 1000})
					text, found := asVersion1(repo, got)
					if diff := cmp.Diff(entries(want), entries(text)); diff != "" {
						t.Errorf("%s (-git +tool):\n%s\n%s", repo, diff, script)
					}
					mu.Lock()
					for _, kind := range found {
						kinds[kind]++
					}
					mu.Unlock()
					if err := os.RemoveAll(filepath.Join(w.dir, repo)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	day := soak.Seed(t)
	for seed := range uint64(families) {
		if t.Failed() {
			break
		}
		if !soak.Today(day, int(seed), 25) {
			continue
		}
		seeds <- seed
	}
	close(seeds)
	workers.Wait()
	t.Logf("kinds of entries: %v", kinds)
	for _, kind := range []string{"R", "conflict", "submodule", "stash", "untracked", "M", "A", "D", "T", "detached"} {
		if kinds[kind] < soak.Rounds(0, 10) && !t.Failed() {
			t.Errorf("%d repositories have %s, want more", kinds[kind], kind)
		}
	}
}

// entries are the records of a status in the first format, each with its names, in the
// order of their text: git lists conflicts elsewhere in the second.
func entries(status string) []string {
	var all []string
	fields := strings.Split(status, "\x00")
	for i := 0; i < len(fields); i++ {
		entry := fields[i]
		if len(entry) > 2 && strings.ContainsAny(entry[:2], "RC") && !strings.HasPrefix(entry, "##") && i+1 < len(fields) {
			i++
			entry += "\x00" + fields[i]
		}
		all = append(all, entry)
	}
	slices.Sort(all)
	return all
}

// asVersion1 writes a status like git status --porcelain=v1 -z, and counts the kinds of its
// entries.
func asVersion1(repo string, s Status) (text string, kinds []string) {
	var b strings.Builder
	head := "HEAD (no branch)"
	if !s.Detached {
		head = string(s.Branch)
	}
	if s.Commit == "" {
		head = "No commits yet on " + string(s.Branch)
	}
	b.WriteString("## " + head)
	if s.Upstream != "" {
		b.WriteString("..." + string(s.Upstream))
		var track []string
		if s.Ahead > 0 {
			track = append(track, fmt.Sprintf("ahead %d", s.Ahead))
		}
		if s.Behind > 0 {
			track = append(track, fmt.Sprintf("behind %d", s.Behind))
		}
		if s.Gone {
			track = []string{"gone"}
		}
		if len(track) > 0 {
			b.WriteString(" [" + strings.Join(track, ", ") + "]")
		}
	}
	b.WriteByte(0)
	for _, f := range s.Files {
		letters := strings.ReplaceAll(f.Index+f.Worktree, ".", " ")
		if f.Worktree == "?" {
			letters = "??"
		}
		b.WriteString(letters + " " + strings.TrimPrefix(string(f.Path), repo+"/") + "\x00")
		if f.From != "" {
			b.WriteString(strings.TrimPrefix(string(f.From), repo+"/") + "\x00")
		}
		for _, letter := range f.Index + f.Worktree {
			if letter != '.' && letter != '?' {
				kinds = append(kinds, string(letter))
			}
		}
		for kind, is := range map[string]bool{"conflict": f.Conflict, "submodule": f.Submodule, "untracked": f.Worktree == "?"} {
			if is {
				kinds = append(kinds, kind)
			}
		}
	}
	for kind, is := range map[string]bool{"stash": s.Stashes > 0, "detached": s.Detached} {
		if is {
			kinds = append(kinds, kind)
		}
	}
	return strings.TrimSuffix(b.String(), "\n"), kinds
}

// family is a script that makes a repository and variants of it.
func family(r *rand.Rand, seed uint64) string {
	var script strings.Builder
	do := func(format string, args ...any) { fmt.Fprintf(&script, format+"\n", args...) }
	do("set -e; git init -q --template= -b main base%d; cd base%d; mkdir -p dir/deep", seed, seed)
	free := slices.Clone(names)
	r.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	tracked := free[:2+r.IntN(6)]
	if r.IntN(20) > 0 { // otherwise before the first commit
		commits(r, tracked, do)
	}
	for variant := range variants {
		do("cd ..; cp -a base%d r%d.%d; cd r%d.%d", seed, seed, variant, seed, variant)
		changeFiles(r, tracked[1:], slices.Clone(free[len(tracked):]), do)
	}
	return script.String()
}

// commits makes the commits that the variants share.
func commits(r *rand.Rand, tracked []string, do func(string, ...any)) {
	for _, name := range tracked {
		var b strings.Builder
		for range 5 + r.IntN(10) {
			fmt.Fprintf(&b, "line %d\\n", r.IntN(1000))
		}
		do("printf %s > %s", quote(b.String()), quote("./"+name))
	}
	do("git add -A; git commit -qm one")
	first := quote("./" + tracked[0])
	if r.IntN(4) == 0 {
		do("git branch side; git config branch.main.remote .; git config branch.main.merge refs/heads/side; printf x > new%d; git add -A; git commit -qm two", r.IntN(9))
		if r.IntN(3) == 0 {
			do("git branch -qD side")
		}
	}
	if r.IntN(4) == 0 {
		do("printf stash > %s; git stash -q", first)
	}
	conflict := r.IntN(4) == 0
	if conflict {
		do("git checkout -q -b other; printf other > %s; git commit -qam other; git checkout -q -", first)
		if r.IntN(3) == 0 {
			do("git rm -q -- %s; git commit -qm gone", first)
		} else {
			do("printf main > %s; git commit -qam main", first)
		}
		do("git merge -q other >/dev/null 2>&1 || true")
	}
	if r.IntN(5) == 0 && !conflict {
		do("git checkout -q --detach")
	}
	if r.IntN(4) == 0 {
		do("git init -q --template= sub; git -C sub commit -q --allow-empty -m s1; git -c advice.addEmbeddedRepo=false add sub")
		if r.IntN(2) == 0 && !conflict {
			do("git commit -qm submodule -- sub")
		}
		switch r.IntN(3) {
		case 0:
			do("git -C sub commit -q --allow-empty -m s2")
		case 1:
			do(": > sub/dirty")
		}
	}
}

// changeFiles changes files and stages some changes.
func changeFiles(r *rand.Rand, tracked, free []string, do func(string, ...any)) {
	staged, unstaged, intended := []string{}, []string{}, []string{}
	var later []string // after the others were staged
	for _, name := range tracked {
		path := quote("./" + name)
		switch r.IntN(9) {
		case 0:
			do("printf more >> %s", path)
		case 1:
			do("printf more >> %s", path)
			staged = append(staged, path)
		case 2:
			do("rm -f %s", path)
		case 3:
			unstaged = append(unstaged, path)
		case 4:
			if len(free) > 3 {
				do("if [ -e %s ]; then mv -- %s %s; else : > %s; fi", path, path, quote("./"+free[0]), quote("./"+free[0]))
				staged, free = append(staged, quote("./"+free[0])), free[1:]
				unstaged = append(unstaged, path)
			}
		case 5:
			do("rm -f %s; ln -s target %s", path, path)
		case 6:
			do("if [ -e %s ]; then chmod +x %s; fi", path, path)
		case 7:
			do("printf more >> %s", path)
			staged, later = append(staged, path), append(later, path)
		}
	}
	for _, name := range free[:r.IntN(3)] {
		path := quote("./" + name)
		do("printf untracked > %s", path)
		switch r.IntN(3) {
		case 0:
			staged = append(staged, path)
		case 1:
			intended = append(intended, path)
		}
	}
	for _, step := range []struct {
		verb  string
		paths []string
	}{{"add", staged}, {"rm -q --cached --ignore-unmatch", unstaged}, {"add -N", intended}} {
		if len(step.paths) > 0 {
			do("git %s -- %s", step.verb, strings.Join(step.paths, " "))
		}
	}
	for _, path := range later {
		do("printf again >> %s", path)
	}
}
