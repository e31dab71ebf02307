package bench

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// searches are the searches, with the same options for both programs.
var searches = []struct { //nolint:gochecknoglobals // a table
	name    string
	options []string
	pattern string
}{
	{"literal", []string{"-F"}, "ResponseWriter"},
	{"literal-nowhere", []string{"-F"}, "nowhere_at_all_zq"},
	{"literal-often", []string{"-F"}, "return"},
	{"literal-any-case", []string{"-i"}, "responsewriter"},
	{"literal-word", []string{"-w", "-F"}, "nil"},
	{"regex-with-literal", nil, `func \(\w+ \*Server\) \w+`},
	{"alternation", nil, "ErrClosed|ErrTimeout|ErrDeadline"},
	{"alternation-of-8", nil, "alpha|bravo|charlie|delta|echo|foxtrot|golf|hotel"},
	{"words", nil, `\b(mutex|channel|goroutine)\b`},
	{"no-literal", nil, `[A-Z]\w+[0-9]{3}`},
	{"no-literal-words", nil, `\w{5}\s+\w{5}\s+\w{5}\s+\w{5}`},
	{"no-literal-line", nil, `^[a-z]+ [a-z]+ [a-z]+$`},
}

// BenchmarkSearch searches a tree of 40,000 files with the engine of search_content, in a
// separate process, and with ripgrep.
func BenchmarkSearch(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("ripgrep is not installed")
	}
	tree := sourceTree(b, 40_000)
	for _, s := range searches {
		b.Run(s.name, func(b *testing.B) {
			args := append(append([]string(nil), s.options...), "--", s.pattern, tree)
			ours, theirs := &searching{path: filepath.Join(bin, "search"), args: args}, &searching{
				path: rg, args: append([]string{"--no-config", "--no-heading", "--line-number", "--no-unicode", "--no-require-git"}, args...),
			}
			ours.round(b) // the files are in memory from here on
			ours.cpu = nil
			for b.Loop() {
				ours.round(b)
				theirs.round(b)
			}
			report(b, "cpu", "cpu-µs/search", [2]string{"search", "rg"}, median(ours.cpu), median(theirs.cpu))
			report(b, "latency", "µs/search", [2]string{"search", "rg"}, median(ours.took), median(theirs.took))
			b.ReportMetric(float64(ours.memory)/1024, "search-MiB")
			b.ReportMetric(float64(theirs.memory)/1024, "rg-MiB")
		})
	}
}

// searching is a program that is run again and again.
type searching struct {
	path      string
	args      []string
	cpu, took []time.Duration
	memory    int64 // the most that it took, in KiB
}

func (s *searching) round(b *testing.B) {
	b.Helper()
	cmd := exec.Command(s.path, s.args...)
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 { // 1 says that nothing was found
		b.Fatalf("%v: %v", cmd.Args, err)
	}
	s.took = append(s.took, time.Since(began))
	s.cpu = append(s.cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.memory = max(s.memory, usage.Maxrss)
	}
}

// sourceTree makes a tree of so many files, each a copy of one of Go's own
// sources, the same ones each time.
func sourceTree(b *testing.B, files int) string {
	b.Helper()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	var sources []string
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(goroot)), "src"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() < 40_000 {
			sources = append(sources, path)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	w := rand.New(rand.NewPCG(1, 1))
	for i := range files {
		text, err := os.ReadFile(sources[w.IntN(len(sources))])
		if err != nil {
			b.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprintf("d%d/e%d/f%d/file%d.go", i%20, i/20%10, i/200%10, i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}
