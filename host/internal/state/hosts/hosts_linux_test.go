package hosts

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain makes this program a host of a configuration in its own tests: it marks the
// configuration and opens the files of a state directory.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "host" {
		mark := NewMark(os.Args[2])
		lock, err := os.Create(filepath.Join(os.Args[3], "lock"))
		if err != nil {
			panic(err)
		}
		database, err := os.Create(filepath.Join(os.Args[3], "toolhost.db"))
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, "ready")
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			mark.Renew()
			fmt.Fprintln(os.Stdout, "renewed")
		}
		_ = mark.Close()
		_, _ = lock.Close(), database.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hostOf starts a host. renew makes it renew its mark, end ends it.
func hostOf(t *testing.T, config string) (h Host, renew, end func()) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "host", config, dir)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	must(t, err)
	renew = func() {
		t.Helper()
		_, err := in.Write([]byte("\n"))
		must(t, err)
		_, err = lines.ReadString('\n')
		must(t, err)
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait() // it may have ended before
	}
	t.Cleanup(end)
	return Host{PID: cmd.Process.Pid, UID: os.Geteuid(), Program: "exe", StateDir: dir}, renew, end
}

// TestOf finds the hosts of a file and of a directory, under each path that leads there, until
// they end.
func TestOf(t *testing.T) {
	dir := t.TempDir()
	config, other := filepath.Join(dir, "config.hcl"), filepath.Join(dir, "other.hcl")
	for _, path := range []string{config, other} {
		must(t, os.WriteFile(path, []byte("text"), 0o600))
	}
	link := filepath.Join(dir, "link.hcl")
	must(t, os.Symlink(config, link))
	own := NewMark(config) // not another host
	defer own.Close()
	one, renew, end := hostOf(t, config)
	two, _, endTwo := hostOf(t, link)
	hostOf(t, other)
	ofDir, _, _ := hostOf(t, dir)
	check := func(when, path string, want ...Host) {
		t.Helper()
		got := Of(path)
		slices.SortFunc(got, func(a, b Host) int { return a.PID - b.PID })
		slices.SortFunc(want, func(a, b Host) int { return a.PID - b.PID })
		if !slices.Equal(got, want) {
			t.Errorf("%s: Of(%s) = %+v, want %+v", when, filepath.Base(path), got, want)
		}
	}
	check("at first", config, one, two)
	check("by a link", link, one, two)
	check("of a directory", dir, ofDir)
	endTwo()
	check("after the second has ended", config, one)

	// An editor replaces the file.
	must(t, os.WriteFile(config+".new", []byte("text"), 0o600))
	must(t, os.Rename(config+".new", config))
	check("after it was replaced", config)
	renew()
	check("after it was renewed", config, one)
	must(t, os.Rename(config, config+".moved"))
	renew()
	check("after it was moved", config+".moved", one)
	end()
	check("after the first has ended", config+".moved")
	check("of no file", config)
}

// TestSharing reads tables of locks.
func TestSharing(t *testing.T) {
	const head = "1: POSIX  ADVISORY  READ 7 00:25:11 128 128\n2: POSIX  ADVISORY  READ 7 fe:00:12 8390047142213809012 8390047142213809012\n"
	for _, tt := range []struct {
		name, table string
		want        []int
	}{
		{"none", head, nil},
		{"its own", head + "3: FLOCK  ADVISORY  READ 7 fe:00:12 0 EOF\n", nil},
		{"another", head + "3: FLOCK  ADVISORY  READ 8 fe:00:12 0 EOF\n", []int{8}},
		{"twice", "0: FLOCK  ADVISORY  READ 8 fe:00:12 0 EOF\n" + head + "3: FLOCK  ADVISORY  READ 8 fe:00:12 0 EOF\n", []int{8}},
		{"of another file", head + "3: FLOCK  ADVISORY  READ 8 fe:00:13 0 EOF\n3: FLOCK  ADVISORY  READ 8 fe:01:12 0 EOF\n", nil},
		{"an exclusive one", head + "3: FLOCK  ADVISORY  WRITE 8 fe:00:12 0 EOF\n", nil},
		{"one that waits", head + "3: -> FLOCK  ADVISORY  READ 8 fe:00:12 0 EOF\n", nil},
		{"in another namespace", head + "3: FLOCK  ADVISORY  READ 0 fe:00:12 0 EOF\n3: FLOCK  ADVISORY  READ -1 fe:00:12 0 EOF\n", nil},
		{"without its own line", "3: FLOCK  ADVISORY  READ 8 fe:00:12 0 EOF\n", nil},
		{"no table", "FLOCK READ\n\x00\n" + strings.Repeat("x", 1<<17), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sharing(strings.NewReader(tt.table), 7); !slices.Equal(got, tt.want) {
				t.Errorf("sharing() = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestProcess(t *testing.T) {
	h, ok := Process(os.Getpid())
	if !ok || h.UID != os.Geteuid() || h.StateDir != "" || !strings.Contains(h.String(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("Process() of this one = %+v, %v", h, ok)
	}
	if h, ok := Process(1 << 30); ok {
		t.Errorf("Process() of none = %+v", h)
	}
	if got, want := (Host{PID: 3, UID: 4294967, StateDir: "/s"}).String(), "process 3 of account 4294967 with the state directory /s"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}
