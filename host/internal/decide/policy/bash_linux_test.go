package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// runLimit is how long a line may run: a loop without an end says nothing.
const runLimit = 2 * time.Second

// shellBox is a place where bash runs lines: a directory with a few files, and programs
// that only say how they were called.
type shellBox struct {
	bash, dir, bin, log, trace, work string
	nobody                           bool
}

// boxFiles are the files in the directory in which the lines run.
//
//nolint:gochecknoglobals // a table
var boxFiles = map[string]string{
	"a": "1\n", "b": "2\n", "names.txt": "b\na\n", "bar.txt": "foo\n", "go.mod": "module x\n", "src/a": "", "sub/a": "x\n", "-oout": "", "--pre=x": "",
}

// markers are the programs that a line could name. Others are not found, and still
// seen in the trace.
const markers = `ls cat grep rm sudo git go find head tail wc sort uniq cut tr rg sed date basename dirname tree diff sleep mkfs dd xargs sh bash python3 x E v f
	echo printf pwd true false test [ kill nohup setsid awk vim make cp mv touch tee chmod rmx lsa a b`

// realWrappers run the command that they are given, after they have printed their own name.
const realWrappers = "env nice timeout stdbuf"

func newShellBox(tb testing.TB, dir string) *shellBox {
	tb.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		tb.Fatal(err)
	}
	b := &shellBox{
		bash: bash, dir: dir, bin: filepath.Join(dir, "bin"), log: filepath.Join(dir, "log"), trace: filepath.Join(dir, "trace"),
		work: filepath.Join(dir, "work"), nobody: os.Getuid() == 0,
	}
	must := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	must(os.MkdirAll(b.bin, 0o755))
	if b.nobody { // so that a hole does no harm to the machine
		must(os.Chmod(filepath.Dir(dir), 0o711))
		must(os.Chmod(dir, 0o711))
	}
	// Several processes write at the same time, each to a separate file.
	marker := "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\" >'" + b.log + "'/$$\n"
	for name := range strings.FieldsSeq(markers) {
		must(os.WriteFile(filepath.Join(b.bin, name), []byte(marker), 0o755))
	}
	for name := range strings.FieldsSeq(realWrappers) {
		program, err := exec.LookPath(name)
		must(err)
		script := strings.Replace(marker, "'/$$\n", "'/$$-0\nexec "+program+" \"$@\"\n", 1)
		must(os.WriteFile(filepath.Join(b.bin, name), []byte(script), 0o755))
	}
	must(b.reset())
	return b
}

// reset makes the directory as it was.
func (b *shellBox) reset() error {
	for _, dir := range []string{b.work, b.log} {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
			return err
		}
	}
	all := []string{b.work, b.log}
	for name, text := range boxFiles {
		file := filepath.Join(b.work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
		all = append(all, filepath.Dir(file), file)
	}
	if !b.nobody {
		return nil
	}
	for _, name := range all {
		if err := os.Chown(name, 65534, 65534); err != nil {
			return err
		}
	}
	return nil
}

// bashRun is the record of a line's actions.
type bashRun struct {
	// called are the words of each command that bash ran itself, traced those of all
	// that it said it would run.
	called, traced [][]string
	// written are files that are new, or other than before, or gone.
	written []string
	// late says that it was stopped.
	late bool
}

// run makes bash run a line in its own environment. $x would do harm wherever it expanded to
// more than one word.
func (b *shellBox) run(line string) (bashRun, error) {
	var o bashRun
	trace, err := os.OpenFile(b.trace, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return o, err
	}
	alive, living, err := os.Pipe()
	if err != nil {
		return o, errors.Join(err, trace.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `ulimit -t 4; ulimit -f 4096; exec "$1" --noprofile --norc -x -c "$2"`, "sh", b.bash, line)
	cmd.Dir = b.work
	cmd.Env = []string{"PATH=" + b.bin, "HOME=" + b.work, "LANG=C.UTF-8", "BASH_XTRACEFD=4", "x=5 rm -o out", "X=rm x", "TMPDIR=" + b.work}
	cmd.ExtraFiles = []*os.File{living, trace}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if b.nobody {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Start()
	closed := errors.Join(living.Close(), trace.Close())
	if err != nil {
		return o, errors.Join(err, closed, alive.Close())
	}
	_ = cmd.Wait() // that it may have failed is of no interest
	// Its background processes hold the pipe.
	_ = alive.SetReadDeadline(time.Now().Add(runLimit))
	_, err = io.Copy(io.Discard, alive)
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	o.late = err != nil || ok && status.Signaled()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there may be none left
	if err := alive.Close(); err != nil {
		return o, err
	}
	if err := b.collect(&o); err != nil {
		return o, err
	}
	return o, nil
}

// collect reads the files that the line left, and removes them.
func (b *shellBox) collect(o *bashRun) error {
	logs, err := os.ReadDir(b.log)
	if err != nil {
		return err
	}
	for _, log := range logs {
		file := filepath.Join(b.log, log.Name())
		text, err := os.ReadFile(file)
		if err := errors.Join(err, os.Remove(file)); err != nil {
			return err
		}
		if words, ok := strings.CutSuffix(string(text), "\x00"); ok { // otherwise it was stopped while it wrote
			o.called = append(o.called, strings.Split(words, "\x00"))
		}
	}
	text, err := os.ReadFile(b.trace)
	if err != nil {
		return err
	}
	o.traced = traced(string(text))
	left := map[string]string{}
	err = filepath.WalkDir(b.work, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && name == b.work {
			return err
		}
		rel, err := filepath.Rel(b.work, name)
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		left[rel] = string(content)
		return err
	})
	if err != nil {
		return err
	}
	for name, content := range left {
		if before, ok := boxFiles[name]; !ok || before != content {
			o.written = append(o.written, name)
		}
	}
	for name := range boxFiles {
		if _, ok := left[name]; !ok {
			o.written = append(o.written, name)
		}
	}
	if len(o.written) > 0 {
		return b.reset()
	}
	return nil
}

// traced reads the commands in the output of bash -x. It quotes with '...', $'...' and \.
func traced(text string) [][]string {
	var all [][]string
	for text != "" {
		rest := strings.TrimLeft(text, "+")
		begins := rest != text && strings.HasPrefix(rest, " ")
		words, after, whole := unquote(rest)
		text = after
		if !whole { // it was stopped
			return all
		}
		// Lines that are not commands are left out.
		if begins && len(words) > 0 && !slices.Contains([]string{"[[", "for", "case"}, words[0]) && !assigning(words[0]) {
			all = append(all, words)
		}
	}
	return all
}

// assigning reports whether a word sets one of the variables that the lists let be set.
func assigning(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && slices.Contains([]string{"LC_ALL", "LANG", "TZ", "NO_COLOR", "CI", "GOFLAGS_NOT"}, name)
}

// unquote splits the first line of text into words, and returns what follows.
func unquote(text string) (all []string, after string, whole bool) {
	var word strings.Builder
	open := false
	end := func() {
		if open {
			all = append(all, word.String())
		}
		word.Reset()
		open = false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			end()
			return all, text[i+1:], true
		case c == ' ':
			end()
			continue
		case c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
		case c == '\'' || strings.HasPrefix(text[i:], "$'"):
			escapes := c == '$'
			if escapes {
				i++
			}
			for i++; i < len(text) && text[i] != '\''; i++ {
				if escapes && text[i] == '\\' && i+1 < len(text) {
					if octal, err := strconv.ParseUint(text[i+1:min(i+4, len(text))], 8, 8); err == nil {
						word.WriteByte(byte(octal))
						i += 3
						continue
					}
					i++
					word.WriteString(strings.NewReplacer("n", "\n", "t", "\t").Replace(text[i : i+1]))
					continue
				}
				word.WriteByte(text[i])
			}
		default:
			word.WriteByte(c)
		}
		open = true
	}
	return nil, "", false
}

// violations lists actions of a line that its reader did not list.
func (o *bashRun) violations(line *command.Line, redirects []string) []string {
	var all []string
	for _, argv := range append(slices.Clone(o.called), o.traced...) {
		if !slices.ContainsFunc(line.Segments, func(s command.Segment) bool { return listed(&s, argv) }) {
			all = append(all, fmt.Sprintf("it ran %q", argv))
		}
	}
	for _, name := range o.written {
		if !slices.Contains(redirects, name) || !slices.ContainsFunc(line.Segments, func(s command.Segment) bool { return slices.Contains(s.Files, name) }) {
			all = append(all, fmt.Sprintf("it wrote %q", name))
		}
	}
	return all
}

// names reports whether all programs that a line runs are named among its segments: it
// was read as a whole, and none is known only when it runs.
func names(line *command.Line) bool {
	return !line.Unread && !slices.ContainsFunc(line.Segments, func(s command.Segment) bool {
		switch s.Name {
		case "":
			return !s.Maybe && strings.ContainsAny(s.Argv[0], "$`*?[{~<>")
		case "source", ".", "jobs", "trap": // what they run stands elsewhere
			return true
		case "env", "nice", "timeout", "stdbuf", "time", "command", "builtin", "exec", "eval":
			return slices.Contains(s.Words, "")
		}
		return false
	})
}

// unnamed says which programs a line ran that no segment names.
func (o *bashRun) unnamed(line *command.Line) []string {
	var all []string
	for _, argv := range append(slices.Clone(o.called), o.traced...) {
		if strings.Contains(argv[0], "=") || strings.HasPrefix(argv[0], "((") || argv[0] == "select" { // no program
			continue
		}
		if !slices.ContainsFunc(line.Segments, func(s command.Segment) bool { return s.Name == path.Base(argv[0]) || s.Name == argv[0] }) {
			all = append(all, fmt.Sprintf("it ran %q", argv))
		}
	}
	return all
}

// listed reports whether a segment is a command that ran. A word that is known only when
// it runs may be any, but only one.
func listed(s *command.Segment, argv []string) bool {
	if s.Maybe || len(s.Argv) != len(argv) {
		return false
	}
	for i := range argv {
		// Words may lack some at the beginning, which are known.
		from := i - (len(s.Argv) - len(s.Words))
		if known := i == 0 || from < 0 || s.Words[from] == s.Argv[i]; known && s.Argv[i] != argv[i] {
			return false
		}
	}
	return true
}
